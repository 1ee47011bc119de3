import { backends } from './backends/index.ts'
import { chaos } from './chaos.ts'

process.exitCode = await chaos(process.argv.slice(2), backends)
