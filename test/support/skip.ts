import Mocha from 'mocha';

/** Skips a test, or all tests of a group if called from its hook. Prints the reason, because the report has no other place for it. */
export function skip(context: Mocha.Context, reason: string): never {
  const { test } = context;
  const skipped = test instanceof Mocha.Test ? test : test?.parent;
  if (skipped) skipped.title += ` (skipped: ${reason})`;
  return context.skip();
}
