/** How an answer is written: one JSON object, or for people. */
export type Output = {
  answer(json: object, text: string): void;
  /** What a person should know besides, on standard error. */
  note(text: string): void;
};

export function outputTo(streams: { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream }, asJson: boolean): Output {
  return {
    answer: (json, text) => streams.stdout.write(asJson ? `${JSON.stringify(json)}\n` : `${text}\n`),
    note: (text) => streams.stderr.write(`${text}\n`),
  };
}

/** Columns, as wide as their widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => [...(row[column] ?? '')].length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
