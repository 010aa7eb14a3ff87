import type { z } from 'zod';
import { limits } from '#contract/limits.ts';
import { lineSchema } from '#contract/text/text.ts';
import { Problem } from '../../domain/problem.ts';
import { oneLine } from './output.ts';

export const nameSchema = lineSchema(limits.name);

/** A file can have thousands of errors, so a terminal shows only the first ones. */
const maxShownErrors = 20;

/** Validates an input file. @throws Problem `invalid` that says what's wrong, and where */
export function parseInput<Schema extends z.ZodType>(schema: Schema, input: unknown, inputName: string): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.slice(0, maxShownErrors).map(({ path, message }) => oneLine([...path.map(String), message].join(' ')));
  throw new Problem('invalid', `${oneLine(inputName)}: ${errors.join('\n')}`);
}
