import { serverSetup } from '../src/index.ts'

export default serverSetup('redis')
