import { likePrefix } from '@harel/store-base'
import { like, type Mutant, replace } from './mutant.js'

export const prefixSearchMutants: readonly Mutant[] = [
  {
    name: 'searches prefixes with an unescaped pattern',
    backend(backend) {
      backend.idsWithPrefix = (prefix) =>
        [...backend.tables.executions.keys()].filter((id) => like(`${prefix}%`).test(id))
    },
  },
  {
    name: 'searches prefixes without case',
    backend(backend) {
      backend.idsWithPrefix = (prefix) =>
        [...backend.tables.executions.keys()].filter((id) => id.toLowerCase().startsWith(prefix.toLowerCase()))
    },
  },
  {
    name: 'searches prefixes with a glob',
    backend(backend) {
      backend.idsWithPrefix = (prefix) => {
        const pattern = prefix
          .replace(/[\\^$.+(){}|]/g, '\\$&')
          .replaceAll('*', '.*')
          .replaceAll('?', '.')
        return [...backend.tables.executions.keys()].filter((id) => new RegExp(`^${pattern}`, 's').test(id))
      }
    },
  },
  {
    name: 'searches prefixes with an escape that is not asked for',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => find(likePrefix(prefix).slice(0, -1)))
    },
  },
  {
    name: 'ends a range of prefixes at the next UTF-16 unit',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => {
        const last = prefix.charCodeAt(prefix.length - 1)
        const end = prefix.slice(0, -1) + String.fromCharCode((last + 1) & 0xffff)
        return prefix === '' ? find(prefix) : find('').filter((id) => id >= prefix && id < end)
      })
    },
  },
  {
    name: 'finds what is behind a prefix, not what is it',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => find(prefix).filter((id) => id !== prefix))
    },
  },
  {
    name: 'finds nothing for the empty prefix',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => (prefix === '' ? [] : find(prefix)))
    },
  },
  {
    name: 'finds children that are only queued',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => [
        ...find(prefix),
        ...[...backend.tables.spawns.values()].map(({ childId }) => childId).filter((id) => id.startsWith(prefix)),
      ])
    },
  },
  {
    name: 'finds a hundred ids at most',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => find(prefix).slice(0, 100))
    },
  },
]
