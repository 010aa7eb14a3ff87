const numbers = new Intl.NumberFormat('en');

export function formatNumber(count: number): string {
  return numbers.format(count);
}

/** Formats a count with its noun: "1 key", "1,200 keys". */
export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}

/** Says how much of a list is loaded: "50 of 60 calls". */
export function describeLoaded(loaded: number, { total, totalIsMore }: { total: number; totalIsMore: boolean }, one: string): string {
  if (totalIsMore) return `${formatNumber(loaded)} of more than ${pluralize(total, one)}`;
  return total > loaded ? `${formatNumber(loaded)} of ${pluralize(total, one)}` : pluralize(loaded, one);
}
