import data from './cases.json' with { type: 'json' }

/** Inputs out of public bug reports about comparable stores. */
export const cases = data
