import type { ExecutionStore } from '@harel/store-base'

export interface Options {
  prefix: string
  traceMax?: number
}

/** An empty database. It goes with its disposal. */
export interface Database extends AsyncDisposable {
  /** What `driver.py` opens. */
  url: string
  /** Opens it by the package that is proved here. */
  open(options: Options): Promise<ExecutionStore>
}

/** A kind of database that both languages write to; `driver.py` has the other half. */
export interface Backend {
  name: string
  /** Python keeps events in the record of their sender, and so loses them when that is purged. */
  purgesWhatItSent?: true
  /** Has listings show what Python has created, where they do not by themselves. */
  refresh?(store: ExecutionStore): Promise<unknown>
  /** Starts the server of this kind, if it has one; it ends with the disposal. */
  start(): Promise<AsyncDisposable & { make(): Promise<Database> }>
}
