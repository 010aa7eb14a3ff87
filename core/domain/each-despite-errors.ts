/** Works on one item after the other. @throws the first error, after trying all items, or immediately if the signal stops the work */
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
