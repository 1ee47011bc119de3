import { CHECKS, HEAD_BYTES, ONCE, PLACES, STORED_VERSION, script } from './lua.js'

/** What `PURGE` returns where there is another execution now than the one whose companions were looked for. */
export const CHANGED = -2

/**
 * Removes an execution and what was found to be its own.
 *
 * KEYS: execution, processed, outbox, its counter, spawns, timers, paths of the execution's timers, trace, its counter,
 * ids, ids with other writers, where the result is kept, filters, places. ARGV: id, expected version, head of the payload that was seen
 * ('*': any), last outbox number that was looked at, the numbers of beginnings of entries addressed to the execution, of
 * outbox entries and of spawns that were found; then those, then paths of timers.
 *
 * Returns 1 purged, 0 not there (leftovers removed), -1 at another version, -2 as `CHANGED` says.
 */
export const PURGE = script(`${STORED_VERSION}${CHECKS}${ONCE}${PLACES}
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
  or wrongKey(KEYS[13], 'ZCARD') or wrongKey(KEYS[14], 'HLEN')
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
leave(KEYS[13], KEYS[14], id)
return note(KEYS[12], stored == false and 0 or 1)
`)
