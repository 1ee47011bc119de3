import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface Settings {
  /** Names of backends; empty: all. */
  readonly backend: readonly string[]
  /** Names of scenarios; empty: all. */
  readonly scenario: readonly string[]
  /** How long each backend is tried. */
  readonly minutes: number
  /** Of the first round; each round has the next one. */
  readonly seed: number
  /** The length of a round; 1 is the whole. */
  readonly scale: number
  /** Where to write the figures as JSON. */
  readonly json: string | undefined
}

export const HELP = `npm run chaos -- [options]

  --backend NAME,NAME,…
                    only these backends; may be repeated
  --scenario NAME,NAME,…
                    only these scenarios; may be repeated
  --minutes N       how long each backend is tried; what has begun is ended (1)
  --seed N          of the first round (by chance)
  --scale N         how long a round is; 1 is 5,000 commits, 200 cuts, 10,000 executions (0.2)
  --json FILE       write the figures to a file
  --list            only list the backends and scenarios
`

const positive = (option: string, text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${option} must be a positive number, not ${text}`)
  return value
}

const whole = (option: string, text: string): number => {
  const value = Number(text)
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw new Error(`--${option} must be a whole number from 1 on, not '${text}'`)
  }
  return value
}

/** Both `--option a,b` and `--option a --option b`. */
const names = (texts: readonly string[]): string[] => texts.flatMap((text) => text.split(','))

/** @throws Error that says which options there are */
function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      // pnpm hands on the `--` that divides its own options from the script's.
      args: args.filter((arg) => arg !== '--'),
      options: {
        backend: { type: 'string', multiple: true, default: [] },
        scenario: { type: 'string', multiple: true, default: [] },
        minutes: { type: 'string', default: '1' },
        seed: { type: 'string', default: String(1 + Math.trunc(Math.random() * 1e9)) },
        scale: { type: 'string', default: '0.2' },
        json: { type: 'string' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    return values
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${HELP}`, { cause: error })
  }
}

/** @throws Error with what is wrong */
export function readArguments(args: readonly string[]): Settings & { help: boolean; list: boolean } {
  const values = parse(args)
  return {
    ...values,
    backend: names(values.backend),
    scenario: names(values.scenario),
    minutes: positive('minutes', values.minutes),
    seed: whole('seed', values.seed),
    scale: positive('scale', values.scale),
    // npm and pnpm run scripts in the package's own folder, and say where they were called.
    json: values.json === undefined ? undefined : resolve(process.env.INIT_CWD ?? '', values.json),
  }
}
