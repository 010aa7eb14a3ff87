/** Something that a suite opens and closes. */
type Closable = { close(): unknown };

/** Opens something before all tests of a suite, and closes it after them. @returns its properties, which exist from then on */
export const openOnce = <Opened extends Closable>(open: () => Promise<Opened>) => opened(open, before, after);

/** Opens something before each test of a suite, and closes it after the test. @returns its properties, which each test gets anew */
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
