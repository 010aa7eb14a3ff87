/** A line before it's checked: a record, or the reason why it isn't one, with the path of the invalid field, if any. */
export type Row = { line: number; input: unknown } | { line: number; path: string; reason: string };
