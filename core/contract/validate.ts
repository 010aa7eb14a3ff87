import type { z } from 'zod';
import type { FieldError } from './problems.ts';

export type Validated<Data> = { ok: true; data: Data } | { ok: false; errors: FieldError[] };

/** Checks an input against a schema, with the errors by field. */
export function validate<Schema extends z.ZodType>(schema: Schema, input: unknown): Validated<z.output<Schema>> {
  // Without reportInput an issue has no input, and every value of a wrong type would read as a missing field.
  const parsed = schema.safeParse(input, { reportInput: true });
  return parsed.success ? { ok: true, data: parsed.data } : { ok: false, errors: parsed.error.issues.flatMap(fieldErrorsOf) };
}

/** What a value of another kind has to be, in words. */
const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

function fieldErrorsOf(issue: z.core.$ZodIssue): FieldError[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    // The sender chooses the key's length, and the answer repeats the key.
    return issue.keys.map((key) => ({ path: [...path, key.slice(0, 100)].join('.'), message: 'Unknown field.' }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  // A record says of a key only that it is wrong; the key's own schema says how.
  const [{ message } = issue] = issue.code === 'invalid_key' ? issue.issues : [];
  const wanted = issue.code === 'invalid_type' ? kinds[issue.expected] : undefined;
  const said = wanted === undefined ? message : `Must be ${wanted}.`;
  return [{ path: path.join('.'), message: isMissing ? 'This field is required.' : said }];
}
