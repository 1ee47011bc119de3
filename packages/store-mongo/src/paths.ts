/**
 * Timer paths as names of fields. Python harel writes every `.` as U+FF0E; we do so too, and write what a field cannot be
 * called or what would be taken for something else behind an escape: a leading `$`, and the characters of this scheme.
 */
const DOT = '\uff0e'
const DOLLAR = '\uff04'
const ESCAPE = '\ue000'

export const toField = (path: string): string =>
  path
    .replace(/[\uff0e\ue000]|^\uff04/g, (character) => ESCAPE + character)
    .replaceAll('.', DOT)
    .replace(/^\$/, DOLLAR)

export const fromField = (field: string): string =>
  field.replace(/\ue000(.)|\uff0e|^\uff04/gs, (match, escaped?: string) => escaped ?? (match === DOT ? '.' : '$'))
