import type { Backend } from '../backend.js'
import { dynamodb } from './dynamodb.js'
import { mongo } from './mongo.js'
import { postgres } from './postgres.js'
import { redis } from './redis.js'
import { sqlite } from './sqlite.js'

export const backends: readonly Backend[] = [sqlite, postgres, redis, mongo, dynamodb]
