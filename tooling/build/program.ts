// Runs a script of one package when all that the package needs is built: node program.ts FOLDER SCRIPT [ARGUMENT]...
// The script has the terminal to itself; the build is heard of only when it fails.
import { spawnSync } from 'node:child_process'

const [folder = '', script = '', ...args] = process.argv.slice(2)

const build = spawnSync('turbo', ['run', 'build', `--filter=./${folder}...`], { encoding: 'utf8' })
if (build.status !== 0) {
  console.error(build.stdout + build.stderr)
  process.exit(1)
}
const { status } = spawnSync('pnpm', ['--silent', `--dir=${folder}`, 'run', script, ...args], { stdio: 'inherit' })
process.exitCode = status ?? 1
