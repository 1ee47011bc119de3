import { COMMITS } from './commit-script.js'
import { APPEND_TRACE, CHECKS, HEAD_BYTES, ONCE, OWN_VERSION, PLACES, script } from './lua.js'
import { PURGE } from './purge-script.js'

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

/** The beginnings of texts, empty where there is none: one command, where many take both sides longer. ARGV: how many bytes. */
export const HEADS = script(`
local answer = {}
for i, key in ipairs(KEYS) do answer[i] = redis.call('GETRANGE', key, 0, ARGV[1] - 1) end
return answer
`)

/** What stands where the index by filters is kept, once all executions are in it. */
export const COMPLETE = 'complete'

/**
 * Sets right whether ids are in the index, and where they stand in that by filters.
 *
 * KEYS: ids, filters, places, then the executions. ARGV: of each execution its id, the beginning of the payload that was
 * seen ('': another writer's) and its place ('': it stands where it stood). Returns how many ids were added, removed and moved.
 */
export const INDEX = script(`${PLACES}
local ids, filters, places, added, removed, moved = KEYS[1], KEYS[2], KEYS[3], 0, 0, 0
for i = 4, #KEYS do
  local id, seen, place = unpack(ARGV, 3 * i - 11, 3 * i - 9)
  if redis.call('EXISTS', KEYS[i]) == 1 then
    added = added + redis.call('ZADD', ids, 0, id)
    local head = redis.call('GETRANGE', KEYS[i], 0, ${HEAD_BYTES - 1})
    local isForeign = not string.match(head, '${OWN_VERSION}')
    -- Who has written it since has seen to its place.
    if place ~= '' and (head == seen or seen == '' and isForeign) then
      moved = moved + enter(filters, places, id, place)
    end
  else
    removed = removed + redis.call('ZREM', ids, id)
    leave(filters, places, id)
  end
end
return { added, removed, moved }
`)

/**
 * The members of ranges of the index by filters, all at one instant.
 *
 * KEYS: filters, whether they are kept. ARGV: how many of each range; then of each where it starts and where it ends.
 * Returns a list for each; nothing where the index is not complete.
 */
export const FILTERED_IDS = script(`
if redis.call('GET', KEYS[2]) ~= '${COMPLETE}' then return false end
local answer = {}
for i = 2, #ARGV, 2 do
  answer[#answer + 1] = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[i], ARGV[i + 1], 'LIMIT', 0, ARGV[1])
end
return answer
`)

const CALLED = new Set(
  [COMMITS, ADD_TRACE, DUE_TIMERS, DELETE_TIMER, FIND_FIELDS, PURGE, HEADS, INDEX, FILTERED_IDS].flatMap(({ text }) =>
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
