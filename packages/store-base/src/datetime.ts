const TEXT = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?([Zz]|[+-]\d\d:?\d\d)?)?$/
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
/** A number beyond this is in milliseconds, as pydantic reads it. */
const MILLISECONDS_FROM = 2e10

/**
 * The canonical text of an event time: `YYYY-MM-DDTHH:MM:SS`, a fraction of six digits unless it is zero, then `Z`,
 * an offset, or nothing. Reads what Python reads: ISO 8601 text, a date alone, epoch seconds or milliseconds.
 * Undefined for anything else.
 */
export function canonicalDatetime(value: unknown): string | undefined {
  if (typeof value === 'number') return fromNumber(value)
  if (typeof value !== 'string') return undefined
  const match = TEXT.exec(value)
  if (match === null) return /^[+-]?\d+(\.\d*)?$/.test(value) ? fromNumber(Number(value)) : undefined
  const [, year = '', month = '', day = '', hour = '00', minute = '00', second = '00', fraction = '', offset = ''] =
    match
  if (Number(day) < 1 || Number(day) > daysOf(Number(year), Number(month)) || year === '0000') return undefined
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const micros = fraction.slice(0, 6).padEnd(6, '0')
  const shift = canonicalOffset(offset)
  if (shift === undefined) return undefined
  return `${year}-${month}-${day}T${hour}:${minute}:${second}${micros === '000000' ? '' : `.${micros}`}${shift}`
}

function daysOf(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0)
}

function canonicalOffset(offset: string): string | undefined {
  if (offset === '' || offset === 'Z' || offset === 'z') return offset.toUpperCase()
  const hours = offset.slice(1, 3)
  const minutes = offset.slice(-2)
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  return hours === '00' && minutes === '00' ? 'Z' : `${offset[0]}${hours}:${minutes}`
}

function fromNumber(value: number): string | undefined {
  const unit = Math.abs(value) > MILLISECONDS_FROM ? 1000 : 1
  const seconds = Math.floor(value / unit)
  // From the fraction alone, because the double of the whole has fewer than six digits left for it.
  const micros = Math.round((value - seconds * unit) * (1e6 / unit))
  const date = new Date(seconds * 1000 + Math.floor(micros / 1000))
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return undefined
  const rest = (micros % 1e6).toString().padStart(6, '0')
  return `${date.toISOString().slice(0, 19)}${rest === '000000' ? '' : `.${rest}`}Z`
}
