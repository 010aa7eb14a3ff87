/** Something that a suite opens and closes. */
type Closable = { close(): unknown };

/** Opens something before a suite's tests, and closes it after them. @returns an object that has its properties once it's open */
export const openOnce = <Opened extends Closable>(open: () => Promise<Opened>) => opened(open, before, after);

/** The same for each test of a suite. The object then has the properties of what was opened for the current test. */
export const openForEach = <Opened extends Closable>(open: () => Promise<Opened>) => opened(open, beforeEach, afterEach);

function opened<Opened extends Closable>(open: () => Promise<Opened>, first: Mocha.HookFunction, last: Mocha.HookFunction): Opened {
  const properties = {} as Opened;
  let close: (() => unknown) | undefined;
  first(async () => {
    const made = await open();
    close = () => made.close();
    Object.assign(properties, made);
  });
  last(async () => {
    await close?.();
    close = undefined;
  });
  return properties;
}
