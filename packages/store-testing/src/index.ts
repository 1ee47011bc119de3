export type {
  AnyStore,
  Check,
  CheckContext,
  Contract,
  ContractOptions,
  ModelOptions,
  Need,
  OpenOptions,
  Probes,
  Skipped,
} from './contract.js'
export * from './contracts/index.js'
export { describeStore, type StoreUnderTest, type TestRunner } from './describe-store.js'
