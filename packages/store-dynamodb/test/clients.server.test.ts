import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoStore, StoreClosed } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { everything, execution } from './commits.js'
import { clientFor, configFor, freshPrefix, itemsOf, storeOn } from './database.js'
import { Intermediary } from './intermediary.js'

withServer('dynamodb', ({ url }) => {
  test('a client that connect has made goes with the store, after what was under way (B92)', async () => {
    const way = await Intermediary.to(url)
    const prefix = freshPrefix()
    const store = await DynamoStore.connect(configFor(way.url), { prefix })
    const held = Array.from({ length: 10 }, (_, n) => execution(`e${n}`))
    let goOn = () => {}
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve
    })
    way.fail('UpdateItem', { delayed: waiting })
    const committing = held.map((each) => store.commit(each, everything(each.id)))
    await way.received('UpdateItem')
    const closing = store.close()
    await expect(store.load('e0')).rejects.toThrow(StoreClosed)
    goOn()
    await closing
    // Whatever it was told before, it has done.
    await Promise.all(committing)
    expect(await itemsOf(clientFor(url), `${prefix}_executions`)).toHaveLength(10)
    // Nothing was cut off and sent again.
    const writes = way.requests.filter(({ operation }) => operation !== 'DescribeTable' && operation !== 'CreateTable')
    const sent = writes.map(({ body }) => body)
    expect(sent.filter((body) => body.includes('ClientRequestToken'))).toHaveLength(10)
    expect(sent.filter((body) => body.includes('ADD n'))).toHaveLength(2)
    await way.left()
  })

  test('a client of the caller is left open, and none of its settings is changed (B92)', async () => {
    const prefix = freshPrefix()
    const client = new DynamoDBClient(configFor(url))
    const before = client.middlewareStack.identify()
    const store = storeOn(client, { prefix })
    await store.commit(execution('a'), everything('a'))
    await store.close()
    expect(client.middlewareStack.identify()).toEqual(before)
    expect(await itemsOf(client, `${prefix}_executions`)).toHaveLength(1)
    client.destroy()
  })
})
