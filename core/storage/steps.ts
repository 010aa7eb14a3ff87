/** So many values go into one statement: databases take a limited number. */
const atOnce = 500;

export function* inSteps<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}
