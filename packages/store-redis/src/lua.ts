import { createHash } from 'node:crypto'

/**
 * The Lua scripts. Redis does not undo what a script has written before it fails, so each tries everything that can
 * fail before its first write. User JSON is never decoded: Lua has one kind of table for `[]` and `{}`, and doubles for
 * all numbers.
 */
export interface Script {
  readonly text: string
  /** By which the server knows it, once it has seen the text. */
  readonly digest: string
}

export const script = (text: string): Script => ({ text, digest: createHash('sha1').update(text).digest('hex') })

/** What a script says of a key that holds something else than it should. */
export const WRONG_KEY = 'HAREL_WRONG_KEY'
/** What a script says of a payload whose version it cannot find. */
export const NO_VERSION = 'HAREL_NO_VERSION'

/** The first bytes of a payload of ours: its version and most of its commit's token, all of it ASCII. */
export const HEAD_BYTES = 64

/** Lua's pattern of the version in front of a payload of ours. */
export const OWN_VERSION = '^{"version":(%d+)[,}]'

/**
 * `storedVersion(key)`: the version of a payload as text (false where there is none, nil where it cannot be found), and
 * whether another writer wrote it. A payload of ours begins with its version; only one of others is decoded.
 */
export const STORED_VERSION = `
local function storedVersion(key)
  local head = redis.pcall('GETRANGE', key, 0, ${HEAD_BYTES - 1})
  if head == '' then return false, false end
  if type(head) == 'table' then return nil end
  local version = string.match(head, '${OWN_VERSION}')
  if version then return version, false end
  local ok, payload = pcall(cjson.decode, redis.call('GET', key))
  if ok and type(payload) == 'table' and type(payload.version) == 'number' then
    return string.format('%.0f', payload.version), true
  end
end
`

/**
 * `wrongKey(key, size)` and `wrongCounter(key)`: an error where the key holds something else. `size` is the command that
 * says how much a key of the right type holds, which is the fastest way to ask for the type.
 */
export const CHECKS = `
local function wrongKey(key, size)
  if type(redis.pcall(size, key)) == 'number' then return end
  local found = redis.call('TYPE', key).ok
  local wanted = ({ HLEN = 'hash', LLEN = 'list', SCARD = 'set', STRLEN = 'string', ZCARD = 'zset' })[size]
  return redis.error_reply('${WRONG_KEY} ' .. key .. ' holds a ' .. found .. ' instead of a ' .. wanted)
end
local function wrongCounter(key)
  local count = redis.pcall('GET', key)
  if count and (type(count) == 'table' or not string.match(count, '^%d+$')) then
    return redis.error_reply('${WRONG_KEY} ' .. key .. ' holds something else than a count')
  end
end
`

/**
 * `enter(filters, places, id, place)` lets an execution stand there alone, and says whether that is new (1 or 0);
 * `leave(filters, places, id)` nowhere.
 */
export const PLACES = `
local function members(place, id) return place .. id, (string.match(place, '%z.*') or '') .. id end
local function leave(filters, places, id)
  local place = redis.call('HGET', places, id)
  if not place then return end
  redis.call('ZREM', filters, members(place, id))
  redis.call('HDEL', places, id)
end
local function enter(filters, places, id, place)
  if redis.call('HGET', places, id) == place then return 0 end
  leave(filters, places, id)
  local own, general = members(place, id)
  redis.call('ZADD', filters, 0, own, 0, general)
  redis.call('HSET', places, id, place)
  return 1
end
`

/** Adds `step`, the text of an object, to `trace` with its index as the last member, and keeps the last `kept` ones. */
export const APPEND_TRACE = `
local index = string.format('%.0f', redis.call('INCR', traceCounter) - 1)
local separator = step == '{}' and '' or ', '
redis.call('RPUSH', trace, string.sub(step, 1, -2) .. separator .. '"index": ' .. index .. '}')
if kept ~= '0' then redis.call('LTRIM', trace, '-' .. kept, -1) end
`

/** What a driver has sent again is not done again: the first to arrive leaves its result for ten minutes. */
export const ONCE = `
local function done(key) return tonumber(redis.call('GET', key)) end
local function note(key, result)
  redis.call('SET', key, result, 'EX', 600)
  return result
end
`
