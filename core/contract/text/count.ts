const numbers = new Intl.NumberFormat('en');

export function formatCount(count: number): string {
  return numbers.format(count);
}

/** Formats a count with its noun: `1 line`, `1,200 lines`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}
