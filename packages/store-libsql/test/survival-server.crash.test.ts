import { describeServerFaults } from './survival.js'

// Over a web socket as well with all tests.
describeServerFaults(0.02, ['HTTP'])
