import Mocha from 'mocha';

/** Skips a test, or from a hook all tests of its group, and says why: the report has no other place for a reason. */
export function skip(context: Mocha.Context, reason: string): never {
  const { test } = context;
  const skipped = test instanceof Mocha.Test ? test : test?.parent;
  if (skipped) skipped.title += ` (skipped: ${reason})`;
  return context.skip();
}
