/** The code that Node and the database drivers put on their errors, such as `ENOENT` or `23505`; empty where there is none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
