/** Puts the figures of `npm run chaos -- --json FILE`, given as arguments, into the page on reliability. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Run, summary } from './figures.ts'

const PAGE = join(import.meta.dirname, '../../../docs/reliability.md')
const BETWEEN = /(?<=<!-- figures -->\n).*(?=<!-- end of figures -->)/s

const runs = process.argv.slice(2).flatMap((file): Run[] => JSON.parse(readFileSync(file, 'utf8')))
const page = readFileSync(PAGE, 'utf8')
writeFileSync(PAGE, page.replace(BETWEEN, `\n${summary(runs)}\n\n`))
