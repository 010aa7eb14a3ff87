/**
 * Returns the code that Node and the database drivers add to their errors, such as `ENOENT` or `23505`; empty if the error doesn't have a
 * code.
 */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
