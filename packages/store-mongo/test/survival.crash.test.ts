import { describeFaults } from './survival.js'

describeFaults(0.01)
