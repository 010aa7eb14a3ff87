/** The newest Node.js 24, which the images use. Update it together with the package `node` in package.json. A test compares them. */
export const newestNode = '24.21.0';

/**
 * Returns a warning if a Node.js release lacks known security fixes; null if it isn't older than {@link newestNode}, or has another major
 * version, which has its own fixes.
 */
export function describeOutdatedNode(version: string): string | null {
  const [major, ...rest] = parse(version);
  const [newestMajor, ...newest] = parse(newestNode);
  if (major !== newestMajor || compare(rest, newest) >= 0) return null;
  return `Node.js ${version} lacks security fixes. Update it to ${newestNode} or later.`;
}

function parse(version: string): number[] {
  return version.split('.').map((part) => Number.parseInt(part, 10));
}

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((part, position) => part !== b[position]);
  return index < 0 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}
