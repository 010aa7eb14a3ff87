/** A line before it's checked: its values, or the reason why it can't be read, with the path of the invalid field, if any. */
export type Row = { line: number; input: unknown } | { line: number; path: string; reason: string };
