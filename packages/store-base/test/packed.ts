import { decodeExecution, encodeExecution, InvalidPrefix, Names, newExecution } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'

const execution = newExecution({ definitionId: 'order', context: { total: 3 } })
const decoded = decodeExecution(encodeExecution(execution, 1, 'token'))
if (decoded.id !== execution.id) throw new Error('the codec lost the id')
if (storeSchema('sqlite', 'orders').length === 0) throw new Error('there is no SQL schema')

try {
  Names('; drop table')
  throw new Error('a bad prefix was accepted')
} catch (error) {
  if (!(error instanceof InvalidPrefix)) throw error
}
