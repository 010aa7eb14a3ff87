/** A line before its check: a record, or the reason why it isn't one, with the invalid field if there is one. */
export type Row = { line: number; input: unknown } | { line: number; path: string; reason: string };
