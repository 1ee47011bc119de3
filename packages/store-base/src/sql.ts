export { mayPass, type SqlExecutor, type SqlResult, wasNotSent } from './sql/executor.js'
export { listingSql, type Sql, scanningListingSql } from './sql/listing.js'
export { claimFile } from './sql/open-files.js'
export { RemoteSqliteBackend, type RemoteSqliteOptions } from './sql/remote-backend.js'
export { prepareRemoteSchema } from './sql/remote-schema.js'
export {
  type Dialect,
  missingFrom,
  SCHEMA_VERSION,
  type SchemaObject,
  sqliteSummaryFill,
  sqlSchema,
  storeSchema,
  transportSchema,
} from './sql/schema.js'
export {
  checkLacking,
  FILLED_AT_ONCE,
  hasSummary,
  missingFromSqlite,
  printSqliteSchema,
  SMALL_TABLE,
} from './sql/sqlite-catalogue.js'
export { type SqliteStatements, sqliteStatements } from './sql/sqlite-statements.js'
export { fromSummaryColumn, toSummaryColumn } from './sql/summary-text.js'
