import { InvalidArgument } from '@harel/store-base'

/** Where requests go, and with what. */
export interface Hosts {
  readonly urls: readonly string[]
  readonly authorization: string | undefined
}

/**
 * @param urls of the nodes, each with a user and password or without
 * @throws InvalidArgument, which shows no password
 */
export function parseHosts(urls: string | readonly string[], username?: string, password?: string): Hosts {
  const list: readonly unknown[] = Array.isArray(urls) ? urls : [urls]
  if (list.length === 0) throw new InvalidArgument('urls', urls, 'one or more URLs')
  let credentials = username === undefined ? undefined : `${username}:${password ?? ''}`
  const origins = list.map((text) => {
    const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new InvalidArgument('urls', '(not shown)', 'URLs with http: or https:')
    }
    if (url.username !== '') {
      credentials ??= `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    }
    return `${url.origin}${url.pathname.replace(/\/$/, '')}`
  })
  const authorization = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`
  return { urls: origins, authorization }
}
