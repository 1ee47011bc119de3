import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ExecutionStore, StoreUnavailable, type Verdict } from '@harel/store-base'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertSurvives, type OpenForFaults, scenarios, type UnderFaults } from '../../src/faults/index.js'
import { capabilities, type MemoryBackend } from '../memory-database.js'
import { override, replace } from '../mutants/mutant.js'
import { BadGateway, MemoryServer, openRemote, type SendCommit } from './memory-server.js'

async function serve(breakBackend?: (backend: MemoryBackend) => void, speaks: 'tcp' | 'http' = 'tcp') {
  const server = await MemoryServer.start(breakBackend, speaks)
  onTestFinished(() => server.kill())
  const under: UnderFaults = {
    capabilities,
    open: ({ address = '', ...options }) => openRemote(address, options),
    address: () => server.url,
    speaks,
    server,
    program: new URL('../programs/faults-writer.ts', import.meta.url),
  }
  return { server, under }
}

/** Plays the scenario of this name. */
async function play(name: string, under: UnderFaults, scale = 0.02) {
  const scenario = scenarios.find((candidate) => candidate.name === name)
  if (scenario === undefined) throw new Error(`no scenario is called '${name}'`)
  const { lost, doubled, breaches, ...figures } = await scenario.run({ under, seed: 7, scale })
  return { found: { lost, doubled, breaches }, lost: lost.join('; '), doubled: doubled.join('; '), figures }
}

/** A driver that makes something of its own of a commit. */
const driver = (sendCommit: SendCommit): Pick<UnderFaults, 'open'> => ({
  open: ({ address = '', ...options }) => openRemote(address, options, sendCommit),
})

const takesLossForSuccess = driver((send, { emits }) =>
  send().catch(() => ({ applied: true, seqs: emits.map(() => 0) })),
)

test.each(['tcp', 'http'] as const)(
  'a store that keeps its promises survives all there is over %s',
  { timeout: 60_000 },
  async (speaks) => {
    const { under } = await serve(undefined, speaks)
    const survivals = await assertSurvives(under, { seed: 7, scale: 0.02 })
    expect(survivals.map(({ title }) => title)).toEqual(scenarios.map(({ title }) => title))
    for (const { title, outcome } of survivals) {
      expect(outcome, title).toMatchObject({ lost: [], doubled: [], breaches: [] })
      expect(outcome?.commits, title).toBeGreaterThan(1)
      expect(outcome?.acknowledged, title).toBeGreaterThan(1)
    }
  },
)

test('what cannot be broken is not tried, and the reason is told', async () => {
  const { under } = await serve()
  const { open, address } = under
  const bare = { capabilities: { shared: false }, open, ...(address !== undefined && { address }) }
  const survivals = await assertSurvives(bare, { seed: 7, scale: 0.01 })
  expect(survivals.filter(({ skipped }) => skipped === undefined)).toHaveLength(1)
})

test('a failure says what was lost, and the seed that finds it again', async () => {
  const { under } = await serve((backend) => replace(backend, 'mark', () => () => {}))
  const { capabilities, open, address = () => '' } = under
  const survival = assertSurvives({ capabilities, open, address }, { seed: 7, scale: 0.02 })
  await expect(survival).rejects.toThrow(/storm one execution .*seed 7.* lost: mark of faults-7-0\.0/)
})

describe('a lost reply that the driver', () => {
  test('takes for a success is found', async () => {
    const { under } = await serve()
    expect((await play('lost-replies', { ...under, ...takesLossForSuccess })).lost).toContain('acknowledged')
  })

  test('takes for a refusal is found', async () => {
    const { under } = await serve()
    const refusal = ({ expected }: { expected: number }): Verdict => ({ applied: false, found: expected + 1 })
    const wrong = driver((send, commit) => send().catch(() => refusal({ ...commit, expected: commit.expected + 1 })))
    expect((await play('lost-replies', { ...under, ...wrong })).doubled).toContain('refused')
  })
})

test('a success that a cut connection has prevented is found', async () => {
  const { under } = await serve()
  expect((await play('connections', { ...under, ...takesLossForSuccess })).lost).toContain('acknowledged')
})

describe('behind a gateway', () => {
  const lose = async (broken: Partial<UnderFaults>, breakBackend?: (backend: MemoryBackend) => void) => {
    const { under } = await serve(breakBackend, 'http')
    // Long enough for every way to lose a request or its reply.
    return play('lost-replies', { ...under, ...broken }, 0.05)
  }

  test('a 502 for a commit that was applied, taken for a refusal, is found', async () => {
    const wrong = driver((send) =>
      send().catch((error: Error) => {
        throw error.cause instanceof BadGateway ? new StoreUnavailable('refused', error) : error
      }),
    )
    const { doubled, found } = await lose(wrong)
    expect(doubled).toContain('refused')
    expect(found.breaches).toEqual([])
  })

  test('a lost reply that becomes a conflict of the commit with itself is found', async () => {
    const wrong = driver(async (send) => {
      const verdict = await send().catch(send)
      return verdict.applied ? verdict : { ...verdict, foreign: true }
    })
    expect((await lose(wrong)).doubled).toContain('refused')
  })

  test('a commit that is sent again for want of a reply, and applied twice, is found', async () => {
    const { doubled } = await lose({}, (backend) =>
      replace(backend, 'commit', (commit) => (given) => {
        const isRepeated = backend.versionOf(given.id) === given.version
        return commit(isRepeated ? { ...given, expected: given.version } : given)
      }),
    )
    expect(doubled).toMatch(/child .*event /)
  })

  test('a success that was never sent is found', async () => {
    expect((await lose(takesLossForSuccess)).lost).toContain('acknowledged')
  })

  test('a success that was made up when a connection broke is found', async () => {
    const { under } = await serve(undefined, 'http')
    const { lost } = await play('connections', { ...under, ...takesLossForSuccess }, 0.05)
    // Applied or not, its seqs are invented.
    expect(lost).toMatch(/acknowledged|seqs 0,0/)
  })
})

test('a server that forgets what it has acknowledged is found', async () => {
  const { server, under } = await serve()
  server.forgetFromHere()
  expect((await play('killed-server', under)).lost).toContain('acknowledged')
})

test('a process that acknowledges what it has not sent yet is found', async () => {
  const { under } = await serve()
  const program = new URL('../programs/hasty-writer.ts', import.meta.url)
  expect((await play('killed-writers', { ...under, program })).lost).toContain('acknowledged')
})

test('a process that is read too slowly says everything all the same', async () => {
  const { server } = await serve()
  const orders = {
    ns: 'n'.repeat(900),
    commits: 400,
    writers: 1,
    executions: 200,
    seed: 7,
    open: { address: server.url },
  }
  const program = fileURLToPath(new URL('../programs/faults-writer.ts', import.meta.url))
  // As a thread of the store does, it has the pipe refuse what does not fit.
  const args = ['--import', 'data:text/javascript,process.stdout', program, JSON.stringify(orders)]
  const writer = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(writer, 'exit')
  // More than a pipe takes has been written by then.
  await sleep(5000)
  const [said, [code]] = await Promise.all([text(writer.stdout), ended])
  expect(code).toBe(0)
  expect(
    said
      .trimEnd()
      .split('\n')
      .filter((line) => JSON.parse(line).note === 'applied'),
  ).toHaveLength(400)
})

test('two winners of one version are found', async () => {
  const { under } = await serve((backend) =>
    replace(backend, 'commit', (commit) => (given) => {
      const found = backend.versionOf(given.id) ?? 0
      return commit(given.expected === found - 1 ? { ...given, expected: found } : given)
    }),
  )
  expect((await play('storm', under)).lost).toContain('acknowledged')
})

describe('of ten that open at once, without a program', () => {
  const serveAlone = async () => {
    const { server, under } = await serve()
    const { program: _program, ...alone } = under
    return { server, under: alone }
  }

  test('one that cannot make its tables beside another one is found', async () => {
    const { under } = await serveAlone()
    const made = new Set(['harel'])
    const making = new Set<string>()
    const open: OpenForFaults = async (options) => {
      const { prefix } = options
      if (making.has(prefix)) throw new Error('the table exists')
      if (!made.has(prefix)) {
        making.add(prefix)
        await sleep(50)
        making.delete(prefix)
        made.add(prefix)
      }
      return under.open(options)
    }
    await expect(play('opening', { ...under, open })).rejects.toThrow('the table exists')
  })

  test('one that empties the tables when it opens is found', async () => {
    const { server, under } = await serveAlone()
    let opened = 0
    const open: UnderFaults['open'] = async (options) => {
      // The first is the auditor, the second has nobody to harm.
      const harmful = ++opened > 2
      while (harmful && server.isEmpty) await sleep(1)
      server.empty()
      return under.open(options)
    }
    expect((await play('opening', { ...under, open })).lost).toContain('acknowledged')
  })
})

describe('of ten processes that open at once', () => {
  test.each([
    ['cannot make its tables beside another one', 'clumsy-opener.ts', 'a writer has ended with 1'],
    ['ends before it opens', 'nothing.ts', 'a writer has ended with 3'],
  ])('one that %s is found', async (_what, program, failure) => {
    const { under } = await serve()
    const opening = play('opening', { ...under, program: new URL(`../programs/${program}`, import.meta.url) })
    await expect(opening).rejects.toThrow(failure)
  })

  test('all are there before the first opens', async () => {
    const { under } = await serve()
    const program = new URL('../programs/counting-opener.ts', import.meta.url)
    expect((await play('opening', { ...under, program })).found).toEqual({ lost: [], doubled: [], breaches: [] })
  })
})

describe('patience', () => {
  const impatient = async (methods: (store: ExecutionStore) => Partial<ExecutionStore>): Promise<UnderFaults> => {
    const { under } = await serve()
    const open: OpenForFaults = async (options) => {
      const store = await openRemote(options.address ?? '', options)
      return override(store, methods(store))
    }
    return { ...under, patienceMs: 1000, open }
  }
  const never = () => new Promise<never>(() => {})

  test('ends with a call that never ends', async () => {
    const hanging = await impatient(() => ({ commit: never }))
    await expect(play('storm', hanging)).rejects.toThrow(/commit faults-7-0\.\d+ has not settled within 1 s/)
  })

  test('ends with a store that never opens', async () => {
    const { under } = await serve()
    const opening = play('storm', { ...under, patienceMs: 1000, open: never })
    await expect(opening).rejects.toThrow('opening has not settled within 1 s')
  })

  test('ends with a store that never closes', async () => {
    await expect(play('storm', await impatient(() => ({ close: never })))).rejects.toThrow('close has not settled')
  })

  test('does not end with a writer who comes last again and again, while others write', async () => {
    const slow = await impatient((store) => ({
      commit: (...commit) => sleep(150).then(() => store.commit(...commit)),
    }))
    expect((await play('storm', slow)).figures.commits).toBe(40)
  })
})

describe('a storm finds a store that', () => {
  test.each<[what: string, missing: RegExp, breakBackend: (backend: MemoryBackend) => void]>([
    ['forgets marks', /mark of/, (backend) => replace(backend, 'mark', () => () => {})],
    ['forgets timers', /timer/, (backend) => replace(backend, 'arm', () => () => {})],
    ['forgets trace steps', /step \d+ of/, (backend) => replace(backend, 'appendTrace', () => () => {})],
    ['forgets events', /event .*own/, (backend) => replace(backend, 'queue', () => () => 0)],
    [
      'gives seqs in the wrong order',
      /seqs 2,1 of/,
      (backend) => replace(backend, 'writeCompanions', (write) => (commit) => write(commit).reverse()),
    ],
    [
      'forgets spawns',
      /child/,
      (backend) => replace(backend, 'writeCompanions', (write) => (commit) => write({ ...commit, spawns: [] })),
    ],
  ])('%s', async (_what, missing, breakBackend) => {
    const { under } = await serve(breakBackend)
    expect((await play('storm', under)).lost).toMatch(missing)
  })

  test('queues an event twice', async () => {
    const { under } = await serve((backend) =>
      replace(backend, 'queue', (queue) => (target, event) => {
        queue(target, event)
        return queue(target, event)
      }),
    )
    expect((await play('storm', under)).doubled).toContain('event')
  })

  test('keeps what goes with a refused commit', async () => {
    const { under } = await serve((backend) =>
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        if (!verdict.applied) backend.writeCompanions(given)
        return verdict
      }),
    )
    expect((await play('storm', under)).doubled).toMatch(/mark of .*child .*event/)
  })

  test('reports a version that nobody has stored', async () => {
    const { under } = await serve((backend) =>
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        return verdict.applied ? verdict : { applied: false, found: 1_000_000 }
      }),
    )
    expect((await play('storm', under)).found.breaches[0]).toContain('version 1000000')
  })

  test('refuses a commit because of the version that it goes on from', async () => {
    const { under } = await serve((backend) =>
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        return verdict.applied ? verdict : { applied: false, found: given.expected }
      }),
    )
    expect((await play('storm', under)).found.breaches[0]).toContain('which it goes on from')
  })

  test('leaves its caller at a wrong version', async () => {
    const { under } = await serve()
    const open: UnderFaults['open'] = ({ address = '', ...options }) => {
      const store = openRemote(address, options)
      return override(store, {
        async commit(execution, changes) {
          const { version } = execution
          return await store.commit(execution, changes).finally(() => {
            execution.version = version + (execution.version === version ? 1 : 0)
          })
        },
      })
    }
    const { found } = await play('storm', { ...under, open })
    expect(found.breaches.join()).toMatch(/has succeeded and left.*has failed and left/)
  })

  test("lets a driver's error through", async () => {
    const { under } = await serve()
    const open: UnderFaults['open'] = ({ address = '', ...options }) =>
      override(openRemote(address, options), { commit: () => Promise.reject(new Error('ECONNRESET')) })
    await expect(play('storm', { ...under, open })).rejects.toThrow('ECONNRESET')
  })
})

test.each(['marks', 'timers', 'traces'] as const)('a purge that leaves %s is found', async (table) => {
  const { under } = await serve((backend) =>
    replace(backend, 'purge', (purge) => (id, version) => {
      const map = backend.tables[table] as Map<string, unknown>
      const kept = map.get(id)
      const isPurged = purge(id, version)
      if (isPurged && kept !== undefined) map.set(id, kept)
      return isPurged
    }),
  )
  expect((await play('purges', under)).doubled).not.toBe('')
})
