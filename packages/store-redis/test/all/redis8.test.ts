import { describeServer } from './server.js'

describeServer('redis8')
