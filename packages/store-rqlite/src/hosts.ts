import { InvalidArgument } from '@harel/store-base'
import { type Origin, originOf } from './http.js'

/** A node: where requests to it go, and with what. */
export interface Host {
  readonly origin: Origin
  /** In front of the paths. */
  readonly base: string
  readonly authorization: string | undefined
}

export interface Credentials {
  /** For basic authentication. Default: those in the URLs, if any. */
  username?: string
  password?: string
}

const basic = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

/**
 * @param urls of the nodes, each with a user and password or without
 * @throws InvalidArgument, which shows no URL and no password
 */
export function parseHosts(urls: string | readonly string[], { username, password }: Credentials): Host[] {
  const list: readonly unknown[] = Array.isArray(urls) ? urls : [urls]
  if (list.length === 0) throw new InvalidArgument('urls', urls, 'one or more URLs')
  // In the header, a colon ends the name.
  if (username !== undefined && (typeof username !== 'string' || !/^[^:]+$/.test(username))) {
    throw new InvalidArgument('username', username, 'a text without a colon')
  }
  if (password !== undefined && (typeof password !== 'string' || username === undefined)) {
    throw new InvalidArgument('password', '(not shown)', 'a text, beside a username')
  }
  const given = username === undefined ? undefined : basic(username, password ?? '')
  return list.map((text) => {
    const { url, username, password } = parse(text)
    const { protocol, pathname, search, hash } = url
    if (!/^https?:$/.test(protocol) || search !== '' || hash !== '') throw invalidUrl()
    const authorization = given ?? (username === '' ? undefined : basic(username, password))
    return { origin: originOf(url), base: pathname.replace(/\/+$/, ''), authorization }
  })
}

const invalidUrl = () => new InvalidArgument('urls', '(not shown)', 'URLs with http: or https:, without a query')

function parse(text: unknown) {
  try {
    const url = new URL(String(text))
    return { url, username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  } catch {
    throw invalidUrl()
  }
}
