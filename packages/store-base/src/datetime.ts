const TEXT =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*([Zz]|[+-]\d\d:?(?:\d\d)?)?)?$/
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
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)))
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const exists = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day) && year !== '0000'
  if (!exists || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const micros = fraction.slice(0, 6).padEnd(6, '0')
  const shift = canonicalOffset(offset)
  if (shift === undefined) return undefined
  return `${year}-${month}-${day}T${hour}:${minute}:${second}${micros === '000000' ? '' : `.${micros}`}${shift}`
}

function canonicalOffset(offset: string): string | undefined {
  if (offset === '') return ''
  const digits = offset.slice(1).replace(':', '').padEnd(4, '0')
  if (/^[Zz]/.test(offset) || digits === '0000') return 'Z'
  if (Number(digits.slice(0, 2)) > 23 || Number(digits.slice(2)) > 59) return undefined
  return `${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`
}

function fromNumber(value: number): string | undefined {
  const micros = Math.round((Math.abs(value) > MILLISECONDS_FROM ? value / 1000 : value) * 1e6)
  const date = new Date(Math.floor(micros / 1000))
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return undefined
  const rest = (((micros % 1e6) + 1e6) % 1e6).toString().padStart(6, '0')
  return `${date.toISOString().slice(0, 19)}${rest === '000000' ? '' : `.${rest}`}Z`
}
