/** A name as it stands in statements. */
export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The body of a function, between quotes that stand nowhere in it: the name of a schema may hold any. */
export function quoteBody(body: string): string {
  let tag = '$function$'
  for (let n = 1; body.includes(tag); n++) tag = `$function${n}$`
  return tag + body + tag
}
