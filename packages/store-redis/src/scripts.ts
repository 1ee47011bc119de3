import { COMMITS } from './commit-script.js'
import { APPEND_TRACE, CHECKS, ONCE, script } from './lua.js'
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
