/** A line before its check: a record, or the reason why it has none. */
export type Row = { line: number; input: unknown } | { line: number; reason: string };
