import type { Backend } from '../backend.js'
import { postgres } from './postgres.js'
import { sqlite } from './sqlite.js'

export const backends: readonly Backend[] = [sqlite, postgres]
