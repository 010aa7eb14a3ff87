/** A year, in ms. Without a maximum, a header with enough digits would become Infinity. */
const maxWait = 365 * 24 * 3_600_000;

/**
 * RFC 9110 §10.2.3: seconds or a date. Dates without GMT, in C's asctime format, are in UTC, too.
 *
 * @returns milliseconds from now; 0 if the header is missing or invalid
 */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d+$/.test(header)) return Math.min(maxWait, Number(header) * 1_000);
  const isDate = /^[A-Z][a-z]{2,8},? [\w: -]+$/.test(header);
  const wait = isDate ? Date.parse(header.endsWith(' GMT') ? header : `${header} GMT`) - now : 0;
  return Number.isNaN(wait) ? 0 : Math.min(maxWait, Math.max(0, wait));
}
