import type { z } from 'zod';
import type { FieldError } from '#contract/problems.ts';

/** What is wrong with an input, by field. */
export function fieldErrors(error: z.ZodError): FieldError[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: 'This field is not known.' }));
    }
    const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
    return [{ path: path.join('.'), message: isMissing ? 'This field is required.' : issue.message }];
  });
}
