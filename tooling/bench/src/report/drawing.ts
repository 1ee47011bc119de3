/** Charts as SVG: plain elements and attributes, readable on a light and on a dark page. */

export interface Drawing {
  readonly title: string
  readonly height: number
  readonly parts: readonly string[]
}

const WIDTH = 860
const LABEL = 250
const INK = '#6b7280'
const COLOURS = ['#2563eb', '#d97706', '#059669', '#db2777', '#7c3aed', '#0891b2']

const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign] ?? sign)

const text = (x: number, y: number, content: string, more = ''): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${INK}" ${more}>${escapeXml(content)}</text>`

const line = (x1: number, y1: number, x2: number, y2: number): string =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="${INK}" stroke-opacity="0.25"/>`

const SPACE = 24

/** The file of one drawing, or of some below each other. */
export function svg(drawings: readonly Drawing[]): string {
  const title = escapeXml(drawings.map((drawing) => drawing.title).join('; '))
  let height = -SPACE
  const parts = drawings.flatMap((drawing) => {
    const top = height + SPACE
    height = top + drawing.height
    const heading = text(0, 16, drawing.title, 'font-size="14" font-weight="600"')
    return [`<g transform="translate(0 ${top})">`, heading, ...drawing.parts, '</g>']
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="${title}">`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

export interface Bar {
  readonly label: string
  readonly value: number
  /** Which of the colours. */
  readonly kind: number
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export interface Bars {
  readonly name: string
  readonly bars: readonly Bar[]
  /** Groups of one scale can be compared. */
  readonly scale: string
}

/** Horizontal bars, group by group. */
export function barChart(title: string, groups: readonly Bars[]): Drawing {
  const ends = new Map<string, number>()
  for (const { scale, bars } of groups) {
    ends.set(scale, Math.max(ends.get(scale) ?? Number.MIN_VALUE, ...bars.map(({ value }) => value)))
  }
  const parts: string[] = []
  let y = 40
  for (const { name, bars, scale } of groups) {
    const end = ends.get(scale) ?? 1
    parts.push(text(0, y, name, 'font-weight="600"'))
    y += 8
    for (const { label, value, kind } of bars) {
      const width = Math.max(1, ((WIDTH - LABEL - 80) * value) / end)
      parts.push(
        text(LABEL - 8, y + 11, label, 'text-anchor="end"'),
        `<rect x="${LABEL}" y="${y}" width="${width.toFixed(1)}" height="14" rx="2" fill="${COLOURS[kind % COLOURS.length]}"/>`,
        text(LABEL + width + 6, y + 11, whole.format(value)),
      )
      y += 18
    }
    y += 22
  }
  return { title, height: y - 16, parts }
}

export interface Curve {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
  readonly kind: number
  readonly isDashed: boolean
}

const PLOT = { left: 60, right: 600, top: 36, height: 240 }

/** The powers of ten around the values. */
function decades(values: readonly number[]): number[] {
  const from = Math.floor(Math.log10(Math.min(...values)))
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))))
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

const power = (exponent: number): string =>
  exponent >= 3
    ? `10${[...String(exponent)].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')}`
    : String(10 ** exponent)

/** Curves over powers of ten, on both axes. */
export function curveChart(title: string, unit: string, curves: readonly Curve[]): Drawing {
  const points = curves.flatMap((curve) => curve.points)
  const [xs, ys] = [decades(points.map(([x]) => x)), decades(points.map(([, y]) => y))]
  const place = (value: number, marks: readonly number[], from: number, to: number) => {
    const [first = 0, last = 1] = [marks[0], marks.at(-1)]
    return from + ((Math.log10(value) - first) / (last - first)) * (to - from)
  }
  const bottom = PLOT.top + PLOT.height
  const x = (value: number) => place(value, xs, PLOT.left, PLOT.right)
  const y = (value: number) => place(value, ys, bottom, PLOT.top)
  const parts = [
    ...ys.map((mark) => line(PLOT.left, y(10 ** mark), PLOT.right, y(10 ** mark))),
    ...ys.map((mark) => text(PLOT.left - 8, y(10 ** mark) + 4, power(mark), 'text-anchor="end"')),
    ...xs.map((mark) => text(x(10 ** mark), bottom + 18, power(mark), 'text-anchor="middle"')),
    text(PLOT.left, PLOT.top - 6, unit, 'font-size="11" text-anchor="end"'),
    text(
      (PLOT.left + PLOT.right) / 2,
      bottom + 36,
      'executions, pending events and due timers stored',
      'text-anchor="middle"',
    ),
  ]
  for (const [index, { name, points, kind, isDashed }] of curves.entries()) {
    const stroke = `stroke="${COLOURS[kind % COLOURS.length]}" stroke-width="2"${isDashed ? ' stroke-dasharray="5 4"' : ''}`
    const path = points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(' ')
    const legend = PLOT.top + 8 + index * 18
    parts.push(
      `<polyline points="${path}" fill="none" ${stroke}/>`,
      `<line x1="${PLOT.right + 20}" y1="${legend}" x2="${PLOT.right + 44}" y2="${legend}" ${stroke}/>`,
      text(PLOT.right + 50, legend + 4, name),
    )
  }
  return { title, height: Math.max(bottom + 48, PLOT.top + 20 + curves.length * 18), parts }
}
