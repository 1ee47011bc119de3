/** In front of a summary text that is written as JSON. */
const MARK = '\u0001'

/**
 * A text of a summary as a column can hold it. PostgreSQL has no U+0000 in texts, and libSQL reads a text up to the first
 * one; so a text with one (or with our mark in front) is written as JSON behind a mark. The payload has it as it is.
 */
export const toSummaryColumn = (text: string | null): string | null =>
  text === null || !(text.includes('\0') || text.startsWith(MARK)) ? text : MARK + JSON.stringify(text)

/** A field of a summary, taken from the column `payload` in SQLite's dialect; a text as `toSummaryColumn` would write it. */
export function summaryFieldSql(field: string): string {
  const value = `json_extract(payload, '$.${field}')`
  if (field !== 'outcome' && field !== 'active_path') return value
  return `CASE WHEN instr(${value}, char(0)) OR substr(${value}, 1, 1) = char(1) THEN char(1) || json_quote(${value}) ELSE ${value} END`
}

/** The text again. What was not written in this way stays as it is. */
export function fromSummaryColumn(column: string | null): string | null {
  if (column === null || !column.startsWith(MARK)) return column
  try {
    const text: unknown = JSON.parse(column.slice(MARK.length))
    return typeof text === 'string' ? text : column
  } catch {
    return column
  }
}
