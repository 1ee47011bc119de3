/** In front of a summary text that is written as JSON. */
const MARK = '\u0001'

/**
 * A text of a summary as a column can hold it. PostgreSQL has no U+0000 in texts, and libSQL reads a text up to the first
 * one; so a text with one (or with our mark in front) is written as JSON behind a mark. The payload has it as it is.
 */
export const toSummaryColumn = (text: string | null): string | null =>
  text === null || !(text.includes('\0') || text.startsWith(MARK)) ? text : MARK + JSON.stringify(text)

/** The text again. Another writer's text may begin with the mark by chance; it stays as it is. */
export function fromSummaryColumn(column: string | null): string | null {
  if (column === null || !column.startsWith(MARK)) return column
  try {
    return String(JSON.parse(column.slice(MARK.length)))
  } catch {
    return column
  }
}
