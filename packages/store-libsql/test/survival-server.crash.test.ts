import { describeServerFaults } from './survival.js'

describeServerFaults(0.02)
