/** The newest Node.js 24, which the images use. Update it together with the package `node` in package.json. A test compares them. */
export const newestNode = '24.21.0';

/** Returns a warning if a Node.js release lacks known security fixes. Another major version has its own. */
export function describeOutdatedNode(version: string): string | null {
  const isSameMajor = Number.parseInt(version, 10) === Number.parseInt(newestNode, 10);
  if (!isSameMajor || version.localeCompare(newestNode, 'en', { numeric: true }) >= 0) return null;
  return `Node.js ${version} lacks security fixes. Update it to ${newestNode} or later.`;
}
