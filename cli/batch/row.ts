/** A line before its check: a record, or the reason why it has none, with the field if it is about one. */
export type Row = { line: number; input: unknown } | { line: number; path: string; reason: string };
