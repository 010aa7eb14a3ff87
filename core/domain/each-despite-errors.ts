/**
 * Runs work for each item, one after the other, because an error with one must not hold up the others.
 *
 * @throws the first error, after trying the others. If the work is stopped, immediately
 */
export async function eachDespiteErrors<Item>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) {
    await work(item).catch((error: unknown) => {
      signal.throwIfAborted();
      errors.push(error);
    });
  }
  if (errors.length > 0) throw errors[0];
}
