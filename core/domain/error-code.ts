/** The code that Node and the database drivers add to their errors, such as `ENOENT` or `23505`; empty if there is none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
