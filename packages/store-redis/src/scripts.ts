/**
 * The Lua scripts. Each checks everything that can fail before its first write, because Redis does not undo what a
 * script has written before an error. User JSON is never decoded: Lua has one kind of table for `[]` and `{}`, and
 * doubles for all numbers.
 */

/** What a script says of a key whose type is another than the layout's. */
export const WRONG_KEY = 'HAREL_WRONG_KEY'
/** What a script says of a payload whose version it cannot find. */
export const CORRUPT = 'HAREL_CORRUPT'

/**
 * `storedVersion(key)`: the version in a payload as text, false for no payload, nil for one without a version. A payload
 * of ours begins with its version; only one by another writer has to be decoded.
 */
const STORED_VERSION = `
local function storedVersion(key)
  local head = redis.call('GETRANGE', key, 0, 47)
  if head == '' then return false end
  local version = string.match(head, '^{"version":(%d+)[,}]')
  if version then return version end
  local ok, payload = pcall(cjson.decode, redis.call('GET', key))
  if ok and type(payload) == 'table' and type(payload.version) == 'number' then
    return string.format('%.0f', payload.version)
  end
end
`

/** `wrongKey(key, type)`: an error reply when the key holds something else. */
const WRONG_KEY_CHECK = `
local function wrongKey(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= wanted then return redis.error_reply('${WRONG_KEY} ' .. key .. ' is a ' .. found) end
end
`

/** `appendTrace(entry, kept)` on the trace and its counter: the entry is the text of an object, the index is its last member. */
const APPEND_TRACE = `
local function appendTrace(trace, counter, entry, kept)
  local index = string.format('%.0f', redis.call('INCR', counter) - 1)
  local separator = entry == '{}' and '' or ', '
  redis.call('RPUSH', trace, string.sub(entry, 1, -2) .. separator .. '"index": ' .. index .. '}')
  if kept > 0 then redis.call('LTRIM', trace, -kept, -1) end
end
`

/**
 * A commit of any shape.
 *
 * KEYS: execution, processed, outbox, outbox counter, spawns, spawn counter, timers, trace, trace counter, ids, summaries,
 * timer paths. ARGV: id, payload, expected version, summary, event id ('' for none), kept steps of the trace, trace step
 * ('' for none), then the number of emits, of spawns and of timers, then the emits, the spawns, and path and time of each
 * timer (time '' to cancel).
 *
 * Returns {1, first outbox number} or {0, stored version or ''}.
 */
export const COMMIT = `${STORED_VERSION}${WRONG_KEY_CHECK}${APPEND_TRACE}
local id, payload, expected, summary, event, kept, step = unpack(ARGV, 1, 7)
local emits, spawns, timers = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])

local wrong = wrongKey(KEYS[1], 'string')
if wrong then return wrong end
local stored = storedVersion(KEYS[1])
if stored == nil then return redis.error_reply('${CORRUPT}') end
if (stored or '0') ~= expected then return {0, stored or ''} end

wrong = wrongKey(KEYS[10], 'zset') or wrongKey(KEYS[11], 'hash')
  or (event ~= '' and wrongKey(KEYS[2], 'set'))
  or (emits > 0 and (wrongKey(KEYS[3], 'hash') or wrongKey(KEYS[4], 'string')))
  or (spawns > 0 and (wrongKey(KEYS[5], 'hash') or wrongKey(KEYS[6], 'string')))
  or (timers > 0 and (wrongKey(KEYS[7], 'zset') or wrongKey(KEYS[12], 'set')))
  or (step ~= '' and (wrongKey(KEYS[8], 'list') or wrongKey(KEYS[9], 'string')))
if wrong then return wrong end

-- The counters come first: one that is no number fails here, with nothing written.
local outbox = emits > 0 and redis.call('INCRBY', KEYS[4], emits) - emits
local spawn = spawns > 0 and redis.call('INCRBY', KEYS[6], spawns) - spawns
if step ~= '' then appendTrace(KEYS[8], KEYS[9], step, tonumber(kept)) end

redis.call('SET', KEYS[1], payload)
redis.call('ZADD', KEYS[10], 0, id)
-- Whether nobody else has ever written this execution: then its timer paths are complete.
local before = redis.call('HGET', KEYS[11], id)
local alone = expected == '0' or (before and string.sub(before, 1, #expected + 3) == expected .. ':1:')
redis.call('HSET', KEYS[11], id, string.format('%.0f', tonumber(expected) + 1) .. (alone and ':1:' or ':0:') .. summary)
if event ~= '' then redis.call('SADD', KEYS[2], event) end

local at = 10
-- In parts, because a call takes a limited number of arguments.
local function number(key, count, last)
  for start = 1, count, 1000 do
    local fields = {}
    for i = start, math.min(start + 999, count) do
      fields[#fields + 1] = string.format('%.0f', last + i)
      fields[#fields + 1] = ARGV[at + i]
    end
    redis.call('HSET', key, unpack(fields))
  end
  at = at + count
end
number(KEYS[3], emits, outbox)
number(KEYS[5], spawns, spawn)
for i = 1, timers do
  local path, time = ARGV[at + 2 * i - 1], ARGV[at + 2 * i]
  if time == '' then
    redis.call('ZREM', KEYS[7], id .. '\\0' .. path)
    redis.call('SREM', KEYS[12], path)
  else
    redis.call('ZADD', KEYS[7], time, id .. '\\0' .. path)
    redis.call('SADD', KEYS[12], path)
  end
end
return {1, outbox and outbox + 1 or 0}
`

/** KEYS: trace, trace counter. ARGV: step, kept steps. */
export const ADD_TRACE = `${WRONG_KEY_CHECK}${APPEND_TRACE}
local wrong = wrongKey(KEYS[1], 'list') or wrongKey(KEYS[2], 'string')
if wrong then return wrong end
appendTrace(KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]))
return 1
`

/** KEYS: timers, timer paths. ARGV: member, time, path. */
export const DELETE_TIMER = `
local time = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not time or tonumber(time) ~= tonumber(ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('SREM', KEYS[2], ARGV[3])
return 1
`

/**
 * Timers behind one, which may be gone meanwhile: a mark with two NULs, which no member has, finds its place.
 *
 * KEYS: timers. ARGV: now, time and member of the last one seen, limit (-1: none). Returns members and times.
 */
export const TIMERS_AFTER = `
local mark = ARGV[3] .. '\\0'
redis.call('ZADD', KEYS[1], ARGV[2], mark)
local first = redis.call('ZRANK', KEYS[1], mark)
redis.call('ZREM', KEYS[1], mark)
local last = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1]) - 1
local limit = tonumber(ARGV[4])
if limit >= 0 then last = math.min(last, first + limit - 1) end
if last < first then return {} end
return redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES')
`

/**
 * KEYS: execution, processed, outbox, spawns, timers, trace, trace counter, ids, summaries, timer paths. ARGV: id,
 * expected version, number of outbox entries, number of spawns, mode, then the numbers of both, then paths of timers.
 *
 * ARGV[5] is '?' while the paths are not known: then it returns -2 where another writer may have armed timers. Returns
 * 1 purged, 0 not there (leftovers removed), -1 at another version.
 */
export const PURGE = `${STORED_VERSION}
local id, expected, mode = ARGV[1], ARGV[2], ARGV[5]
local stored = storedVersion(KEYS[1])
if stored == nil then return redis.error_reply('${CORRUPT}') end
if stored and stored ~= expected then return -1 end
local summary = redis.call('HGET', KEYS[9], id)
local alone = stored and summary and string.sub(summary, 1, #stored + 3) == stored .. ':1:'
if not alone and mode == '?' then return -2 end
local at = 5
local function remove(key, count)
  for start = 1, count, 1000 do
    redis.call('HDEL', key, unpack(ARGV, at + start, at + math.min(start + 999, count)))
  end
  at = at + count
end
remove(KEYS[3], tonumber(ARGV[3]))
remove(KEYS[4], tonumber(ARGV[4]))
for _, path in ipairs(redis.call('SMEMBERS', KEYS[10])) do redis.call('ZREM', KEYS[5], id .. '\\0' .. path) end
for i = at + 1, #ARGV do redis.call('ZREM', KEYS[5], id .. '\\0' .. ARGV[i]) end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[10])
redis.call('ZREM', KEYS[8], id)
redis.call('HDEL', KEYS[9], id)
return stored and 1 or 0
`
