import { describeServer } from './server.js'

describeServer('valkey9')
