import { describeServer } from './server.js'

describeServer('redis7')
