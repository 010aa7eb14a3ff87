export function formatCount(count: number): string {
  return count.toLocaleString('en');
}

/** Formats a count with its noun: `1 line`, `2 lines`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}
