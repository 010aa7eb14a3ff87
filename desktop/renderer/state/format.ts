const numbers = new Intl.NumberFormat('en');

export function formatNumber(count: number): string {
  return numbers.format(count);
}

/** A count with its noun: "1 key", "1,200 keys". */
export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}
