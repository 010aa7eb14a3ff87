import type { z } from 'zod';
import type { FieldError } from './problems.ts';

export type Validated<Data> = { ok: true; data: Data } | { ok: false; errors: FieldError[] };

export function validate<Schema extends z.ZodType>(schema: Schema, input: unknown): Validated<z.output<Schema>> {
  // Without reportInput, an issue has no input, and every value of the wrong type would look like a missing field.
  const parsed = schema.safeParse(input, { reportInput: true, error: describeIssue });
  if (parsed.success) return { ok: true, data: parsed.data };
  const byPath = Map.groupBy(parsed.error.issues.flatMap(toFieldErrors), ({ path }) => path);
  // A value of the wrong type or format often breaks other rules for its field, too, whose errors would only distract.
  return { ok: false, errors: [...byPath.values()].flatMap(([first]) => first ?? []) };
}

const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

/** Says what the value must be. Only for schemas without a message of their own. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') {
    const kind = kinds[issue.expected];
    return kind && describeType(kind, issue.input);
  }
  if (issue.code === 'invalid_union' && issue.discriminator !== undefined)
    return `The field "${issue.discriminator}" has an unknown value.`;
  if (issue.code !== 'too_big' && issue.code !== 'too_small') return undefined;
  const bound = issue.code === 'too_big' ? `at most ${issue.maximum}` : `at least ${issue.minimum}`;
  if (issue.origin === 'array') return `Must contain ${bound} entries.`;
  return `Must be ${bound}${issue.origin === 'string' ? ' characters' : ''}.`;
}

function toFieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    // Shorten the key, because the sender can make it any length, and the response repeats it.
    return issue.keys.map((key) => ({ path: [...path, key.slice(0, 100)].join('.'), message: 'Unknown field.' }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  // A record only says that a key is invalid; the key's own schema says how.
  const [{ message } = issue] = issue.code === 'invalid_key' ? issue.issues : [];
  // A schema's own message doesn't say what to send instead of null or a list.
  const kind = issue.code === 'invalid_type' && typeof issue.input === 'object' ? kinds[issue.expected] : undefined;
  const reason = kind === undefined ? message : describeType(kind, issue.input);
  return [{ path: path.join('.'), message: isMissing ? 'This field is required.' : reason }];
}

/** Says which type the value must have, and what to send instead of an empty value. PHP, for example, writes an empty map as []. */
function describeType(kind: string, input: unknown): string {
  // A query parameter that's sent twice is an array.
  if (kind === 'a string' && Array.isArray(input)) return 'Must be a single string, not several.';
  if (input === null) return `Must be ${kind}. If you don't have a value, omit the field instead of sending null.`;
  const isEmpty = kind === 'an object' && Array.isArray(input) && input.length === 0;
  return `Must be ${kind}.${isEmpty ? ' If it has no entries, send {} or omit the field.' : ''}`;
}
