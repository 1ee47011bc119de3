import { vi } from 'vitest'
import { describeServerFaults } from '../survival.js'

vi.setConfig({ testTimeout: 180_000 })

describeServerFaults(0.1, ['HTTP', 'a web socket'])
