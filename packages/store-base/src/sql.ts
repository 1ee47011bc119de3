export { listingSql, type Sql, scanningListingSql } from './sql/listing.js'
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
export { type SqliteStatements, sqliteStatements } from './sql/sqlite-statements.js'
