interface Order<Document, Entry> {
  readonly limit: number
  readonly entriesOf: (document: Document) => readonly Entry[]
  readonly compare: (a: Entry, b: Entry) => number
  /** Whether a document, and so every one behind it, has only entries behind this one. */
  readonly isBehind: (document: Document, entry: Entry) => boolean
}

/**
 * The first entries of all documents, in order. The documents come in the order of their first entries, and are read until
 * the next one cannot hold anything that comes before what was found.
 *
 * @param found entries of other documents, which have no order
 */
export async function firstEntries<Document, Entry>(
  documents: AsyncIterable<Document>,
  { limit, entriesOf, compare, isBehind }: Order<Document, Entry>,
  found: readonly Entry[] = [],
): Promise<Entry[]> {
  let entries = [...found].sort(compare).slice(0, limit)
  for await (const document of documents) {
    const last = entries[limit - 1]
    if (last !== undefined && isBehind(document, last)) break
    for (const entry of entriesOf(document)) entries.push(entry)
    if (entries.length >= limit) entries = entries.sort(compare).slice(0, limit)
  }
  return entries.sort(compare)
}
