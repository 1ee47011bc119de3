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

const script = (text: string): Script => ({ text, digest: createHash('sha1').update(text).digest('hex') })

/** What a script says of a key that holds something else than it should. */
export const WRONG_KEY = 'HAREL_WRONG_KEY'
/** What a script says of a payload whose version it cannot find. */
export const NO_VERSION = 'HAREL_NO_VERSION'

/** The first bytes of a payload of ours: its version and most of its commit's token, all of it ASCII. */
export const HEAD_BYTES = 64

/**
 * `storedVersion(key)`: the version of a payload as text (false where there is none, nil where it cannot be found), and
 * whether another writer wrote it. A payload of ours begins with its version; only one of others is decoded.
 */
const STORED_VERSION = `
local function storedVersion(key)
  local head = redis.pcall('GETRANGE', key, 0, ${HEAD_BYTES - 1})
  if head == '' then return false, false end
  if type(head) == 'table' then return nil end
  local version = string.match(head, '^{"version":(%d+)[,}]')
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
const CHECKS = `
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

/** Adds `step`, the text of an object, to `trace` with its index as the last member, and keeps the last `kept` ones. */
const APPEND_TRACE = `
local index = string.format('%.0f', redis.call('INCR', traceCounter) - 1)
local separator = step == '{}' and '' or ', '
redis.call('RPUSH', trace, string.sub(step, 1, -2) .. separator .. '"index": ' .. index .. '}')
if kept ~= '0' then redis.call('LTRIM', trace, '-' .. kept, -1) end
`

/** Adds `count` entries, which are the arguments behind `at`, to `queue` under the numbers from `first` on. */
const enqueue = (queue: string, first: string, at: string, count: string): string => `
  if ${count} == 1 then
    redis.call('HSET', ${queue}, ${first}, ARGV[${at} + 1])
  else
    -- In parts, because a call takes a limited number of arguments.
    for start = 1, ${count}, 1000 do
      local fields = {}
      for i = start, math.min(start + 999, ${count}) do
        fields[#fields + 1] = ${first} + i - 1
        fields[#fields + 1] = ARGV[${at} + i]
      end
      redis.call('HSET', ${queue}, unpack(fields))
    end
  end
`

/** How many keys all commits share. */
const SHARED_KEYS = 7

/**
 * Commits of any shape, one after the other: what becomes of one is nothing to the others.
 *
 * KEYS: ids, ids with other writers, outbox, its counter, spawns, their counter, timers; then of each commit the
 * execution and, where there is something for them, processed; the paths of the execution's timers; trace and its
 * counter. ARGV: the number of steps that are kept; then of each commit id, payload, expected version, event id ('' for
 * none), trace step ('' for none), the number of emits and the emits, the same of spawns, and the number of timers and
 * path and time of each (time '' to cancel).
 *
 * Returns of each commit the first outbox number (0 for none); where it is refused a list of the stored version ('' for
 * none) and 1 if that is this very commit, sent before, else 0; where it has failed a list of the error.
 */
export const COMMITS = script(`${STORED_VERSION}${CHECKS}
local ids, mixed, outbox, outboxCounter, spawned, spawnCounter, armed = unpack(KEYS, 1, ${SHARED_KEYS})
local kept, key, at = ARGV[1], ${SHARED_KEYS}, 1
local function nextKey()
  key = key + 1
  return KEYS[key]
end
local function nextCount(width)
  at = at + 1
  local count, before = tonumber(ARGV[at]), at
  at = at + count * width
  return count, before
end

local function commit()
  local id, payload, expected, event, step = unpack(ARGV, at + 1, at + 5)
  at = at + 5
  local emits, emitsAt = nextCount(1)
  local spawns, spawnsAt = nextCount(1)
  local timers, timersAt = nextCount(2)
  local execution, processed, paths, trace, traceCounter = nextKey(), nil, nil, nil, nil
  if event ~= '' then processed = nextKey() end
  if timers > 0 then paths = nextKey() end
  if step ~= '' then trace, traceCounter = nextKey(), nextKey() end

  local stored, foreign = storedVersion(execution)
  if stored == nil then return wrongKey(execution, 'STRLEN') or redis.error_reply('${NO_VERSION}') end
  if (stored or '0') ~= expected then
    local isOwn = redis.call('GETRANGE', execution, 0, ${HEAD_BYTES - 1}) == string.sub(payload, 1, ${HEAD_BYTES})
    return {stored or '', isOwn and 1 or 0}
  end

  local wrong = processed and wrongKey(processed, 'SCARD')
  if emits > 0 then wrong = wrong or wrongKey(outbox, 'HLEN') end
  if spawns > 0 then wrong = wrong or wrongKey(spawned, 'HLEN') or wrongCounter(spawnCounter) end
  if paths then wrong = wrong or wrongKey(armed, 'ZCARD') or wrongKey(paths, 'SCARD') end
  if trace then wrong = wrong or wrongKey(trace, 'LLEN') or wrongCounter(traceCounter) end
  if foreign or not stored then wrong = wrong or wrongKey(ids, 'ZCARD') or wrongKey(mixed, 'SCARD') end
  if wrong then return wrong end

  local first = 0
  if emits > 0 then
    -- The first write: where it fails, nothing has been written.
    local last = redis.pcall('INCRBY', outboxCounter, emits)
    if type(last) == 'table' then return wrongCounter(outboxCounter) or last end
    first = last - emits + 1
  end
  redis.call('SET', execution, payload)
  -- What we have written before is known already.
  if foreign or not stored then redis.call('ZADD', ids, 0, id) end
  if foreign then redis.call('SADD', mixed, id) end
  if processed then redis.call('SADD', processed, event) end
  if emits > 0 then
    ${enqueue('outbox', 'first', 'emitsAt', 'emits')}
  end
  if spawns > 0 then
    local first = redis.call('INCRBY', spawnCounter, spawns) - spawns + 1
    ${enqueue('spawned', 'first', 'spawnsAt', 'spawns')}
  end
  for i = timersAt + 1, timersAt + 2 * timers, 2 do
    local path, time = ARGV[i], ARGV[i + 1]
    if time == '' then
      redis.call('ZREM', armed, id .. '\\0' .. path)
      redis.call('SREM', paths, path)
    else
      redis.call('ZADD', armed, time, id .. '\\0' .. path)
      redis.call('SADD', paths, path)
    end
  end
  if trace then
    ${APPEND_TRACE}
  end
  return first
end

local answers = {}
while at < #ARGV do
  local ok, answer = pcall(commit)
  if not ok or type(answer) == 'table' and answer.err then answer = { answer.err or answer } end
  answers[#answers + 1] = answer
end
return answers
`)

/** What a driver has sent again is not done again: the first to arrive leaves its result for ten minutes. */
const ONCE = `
local function done(key) return tonumber(redis.call('GET', key)) end
local function note(key, result)
  redis.call('SET', key, result, 'EX', 600)
  return result
end
`

/** KEYS: trace, its counter, where the result is kept. ARGV: step, kept steps. */
export const ADD_TRACE = script(`${CHECKS}${ONCE}
local trace, traceCounter, step, kept = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if done(KEYS[3]) then return 1 end
local wrong = wrongKey(trace, 'LLEN') or wrongCounter(traceCounter)
if wrong then return wrong end
${APPEND_TRACE}
return note(KEYS[3], 1)
`)

/**
 * Due timers, in their order, behind one that may be gone.
 *
 * KEYS: timers. ARGV: now, limit (-1: none); time and member of the last one seen, where there is one. Returns members
 * and times in turn.
 */
export const DUE_TIMERS = script(`
local timers, now, limit, time, member = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
-- Lua's own comparison of texts goes by the locale.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local first = 0
if time then
  first = redis.call('ZCOUNT', timers, '-inf', '(' .. time)
  local last = redis.call('ZCOUNT', timers, '-inf', time)
  while first < last do
    local middle = math.floor((first + last) / 2)
    if before(member, redis.call('ZRANGE', timers, middle, middle)[1]) then last = middle else first = middle + 1 end
  end
end
local past = redis.call('ZCOUNT', timers, '-inf', now)
if limit >= 0 then past = math.min(past, first + limit) end
if first >= past then return {} end
return redis.call('ZRANGE', timers, first, past - 1, 'WITHSCORES')
`)

/** KEYS: timers, paths of the execution's timers. ARGV: member, time, path. */
export const DELETE_TIMER = script(`
local time = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not time or tonumber(time) ~= tonumber(ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('SREM', KEYS[2], ARGV[3])
return 1
`)

/**
 * A part of a hash, walked through as HSCAN does.
 *
 * KEYS: hash. ARGV: cursor, size of the part; then texts with one of which a value has to begin (none: any value).
 * Returns the next cursor, then the fields.
 */
export const FIND_FIELDS = script(`
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local answer, entries = { page[1] }, page[2]
for i = 1, #entries, 2 do
  local value, found = entries[i + 1], #ARGV == 2
  for j = 3, #ARGV do found = found or string.sub(value, 1, #ARGV[j]) == ARGV[j] end
  if found then answer[#answer + 1] = entries[i] end
end
return answer
`)

/** What `PURGE` returns where there is another execution now than the one whose companions were looked for. */
export const CHANGED = -2

/**
 * Removes an execution and what was found to be its own.
 *
 * KEYS: execution, processed, outbox, its counter, spawns, timers, paths of the execution's timers, trace, its counter,
 * ids, ids with other writers, where the result is kept. ARGV: id, expected version, head of the payload that was seen
 * ('*': any), last outbox number that was looked at, the numbers of beginnings of entries addressed to the execution, of
 * outbox entries and of spawns that were found; then those, then paths of timers.
 *
 * Returns 1 purged, 0 not there (leftovers removed), -1 at another version, -2 as `CHANGED` says.
 */
export const PURGE = script(`${STORED_VERSION}${CHECKS}${ONCE}
local before = done(KEYS[12])
if before then return before end
local id, expected, seen = ARGV[1], ARGV[2], ARGV[3]
local wrong = wrongKey(KEYS[1], 'STRLEN')
if wrong then return wrong end
if seen ~= '*' and redis.call('GETRANGE', KEYS[1], 0, ${HEAD_BYTES - 1}) ~= seen then return ${CHANGED} end
-- One without a version, which nobody can load or commit, can be got rid of.
local stored = storedVersion(KEYS[1])
if stored and stored ~= expected then return -1 end
wrong = wrongKey(KEYS[3], 'HLEN') or wrongCounter(KEYS[4]) or wrongKey(KEYS[5], 'HLEN')
  or wrongKey(KEYS[6], 'ZCARD') or wrongKey(KEYS[7], 'SCARD')
  or wrongKey(KEYS[10], 'ZCARD') or wrongKey(KEYS[11], 'SCARD')
if wrong then return wrong end

local at = 7
local function take(count)
  at = at + count
  return at - count
end
local texts, beginnings = take(tonumber(ARGV[5])), tonumber(ARGV[5])
local function remove(key, count)
  local from = take(count)
  for start = 1, count, 1000 do
    redis.call('HDEL', key, unpack(ARGV, from + start, from + math.min(start + 999, count)))
  end
end
remove(KEYS[3], tonumber(ARGV[6]))
remove(KEYS[5], tonumber(ARGV[7]))
-- What was sent to the execution since the outbox was looked at.
for number = tonumber(ARGV[4]) + 1, tonumber(redis.call('GET', KEYS[4]) or 0) do
  local field = string.format('%.0f', number)
  local entry = redis.call('HGET', KEYS[3], field) or ''
  for i = texts + 1, texts + beginnings do
    if string.sub(entry, 1, #ARGV[i]) == ARGV[i] then redis.call('HDEL', KEYS[3], field) end
  end
end
for i = at + 1, #ARGV do redis.call('ZREM', KEYS[6], id .. '\\0' .. ARGV[i]) end
for _, path in ipairs(redis.call('SMEMBERS', KEYS[7])) do redis.call('ZREM', KEYS[6], id .. '\\0' .. path) end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[7])
-- The trace of an execution "seq:x" and the counter of the trace of "x" are one key.
if not wrongKey(KEYS[8], 'LLEN') then redis.call('DEL', KEYS[8]) end
if not wrongKey(KEYS[9], 'STRLEN') then redis.call('DEL', KEYS[9]) end
redis.call('ZREM', KEYS[10], id)
redis.call('SREM', KEYS[11], id)
return note(KEYS[12], stored == false and 0 or 1)
`)

/**
 * Sets right whether ids are in the index. KEYS: ids, then the executions of these ids. ARGV: the ids. Returns how many
 * were added and how many were removed.
 */
export const INDEX_IDS = script(`
local added, removed = 0, 0
for i, id in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 1 then
    added = added + redis.call('ZADD', KEYS[1], 0, id)
  else
    removed = removed + redis.call('ZREM', KEYS[1], id)
  end
end
return { added, removed }
`)

const CALLED = new Set(
  [COMMITS, ADD_TRACE, DUE_TIMERS, DELETE_TIMER, FIND_FIELDS, PURGE, INDEX_IDS].flatMap(({ text }) =>
    [...text.matchAll(/(?:redis\.p?call\(|wrongKey\([^,]+, )'([A-Z]+)'/g)].map(([, command = '']) =>
      command.toLowerCase(),
    ),
  ),
)

/**
 * The commands that scripts call and the user may not: a script that learned of it in its middle would leave half of its
 * work. KEYS: one of the keys.
 */
export const MISSING_RIGHTS = `
local missing = {}
for _, command in ipairs({'${[...CALLED].sort().join("', '")}'}) do
  if not redis.acl_check_cmd(command, KEYS[1], KEYS[1], KEYS[1]) then missing[#missing + 1] = command end
end
return missing
`
