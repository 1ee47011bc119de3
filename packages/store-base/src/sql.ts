export { listingSql, type Sql } from './sql/listing.js'
export {
  type Dialect,
  missingFrom,
  SCHEMA_VERSION,
  type SchemaObject,
  sqlSchema,
  storeSchema,
  transportSchema,
} from './sql/schema.js'
export { type SqliteStatements, sqliteStatements } from './sql/sqlite-statements.js'
