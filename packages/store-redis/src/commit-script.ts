import { APPEND_TRACE, CHECKS, HEAD_BYTES, NO_VERSION, PLACES, STORED_VERSION, script } from './lua.js'

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
const SHARED_KEYS = 10

/**
 * Commits of any shape, one after the other: what becomes of one is nothing to the others.
 *
 * KEYS: ids, ids with other writers, outbox, its counter, spawns, their counter, timers, filters, places, whether these
 * two are kept; then of each commit the execution and, where there is something for them, processed; the paths of the
 * execution's timers; trace and its counter. ARGV: the number of steps that are kept; then of each commit id, payload,
 * expected version, place, event id ('' for none), trace step ('' for none), the number of emits and the emits, the same of
 * spawns, and the number of timers and path and time of each (time '' to cancel).
 *
 * Returns of each commit the first outbox number (0 for none); where it is refused a list of the stored version ('' for
 * none) and 1 if that is this very commit, sent before, else 0; where it has failed a list of the error.
 */
export const COMMITS = script(`${STORED_VERSION}${CHECKS}${PLACES}
local ids, mixed, outbox, outboxCounter, spawned, spawnCounter, armed, filters, places, filtersKept =
  unpack(KEYS, 1, ${SHARED_KEYS})
local isPlaced = redis.call('EXISTS', filtersKept) == 1
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
  local id, payload, expected, place, event, step = unpack(ARGV, at + 1, at + 6)
  at = at + 6
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
  if isPlaced then wrong = wrong or wrongKey(filters, 'ZCARD') or wrongKey(places, 'HLEN') end
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
  if isPlaced then enter(filters, places, id, place) end
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
