import { join } from 'node:path'
import { fromCrates, fromPyPI } from './install.ts'
import type { Flavoured, Kind } from './server.ts'

export interface DynamodbOptions extends Flavoured {
  readonly flavour?: 'dynoxide' | 'ministack'
}

export const dynamodb: Kind<DynamodbOptions> = {
  name: 'dynamodb',
  flavours: ['dynoxide', 'ministack'],

  async identify(url) {
    // AWS itself answers this unsigned; DynamoDB Local refuses it, which is an answer as well.
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) })
    const [, version] = /^Dynoxide\/(\S+)/.exec(response.headers.get('server') ?? '') ?? []
    return version === undefined ? { product: 'dynamodb', version: '' } : { product: 'dynoxide', version }
  },

  packaged: (flavour) => (flavour === 'ministack' ? { product: 'ministack', version: '1.5.33' } : undefined),

  container: () => ({
    image: 'amazon/dynamodb-local',
    port: 8000,
    command: ['-jar', 'DynamoDBLocal.jar', '-sharedDb', '-dbPath', '.'],
    url: (host, port) => `http://${host}:${port}`,
  }),

  async start(run, flavour) {
    const port = String(await run.port())
    const url = `http://127.0.0.1:${port}`
    const ready = () => dynamodb.identify(url)
    const data = run.dataDir(flavour)
    if (flavour === 'ministack') {
      const environment = {
        PYTHONPATH: await fromPyPI('ministack-1.5.33', ['ministack==1.5.33']),
        BIND_HOST: '127.0.0.1',
        MINISTACK_HOST: '127.0.0.1',
        GATEWAY_PORT: port,
      }
      return [
        await run.launch({ name: flavour, url, command: 'python3', args: ['-m', 'ministack'], environment, ready }),
      ]
    }
    const command = join(await dynoxide(), 'bin/dynoxide')
    const args = ['serve', '--host', '127.0.0.1', '--port', port, '--db-path', join(data, 'tables.db')]
    return [await run.launch({ name: flavour, url, command, args, ready })]
  },
}

const dynoxide = (): Promise<string> =>
  fromCrates('dynoxide-3.2.0', 'dynoxide-rs@3.2.0', [
    '--no-default-features',
    '--features',
    'native-sqlite,http-server,cli',
  ])
