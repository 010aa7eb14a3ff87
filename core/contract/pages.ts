/** Where this project is developed. npm accepts provenance only from this repository. */
export const repository = 'https://github.com/callkey/callkey';

/** Returns the address of one of the project's pages, for a message. @param path from the root, with a heading's anchor */
export function pageUrl(path: `${string}.md` | `${string}.md#${string}`): string {
  return `${repository}/blob/main/${path}`;
}
