import { z } from 'zod';
import { limits } from '../limits.ts';
import { checkPrintable, identifierSchema, isWithinCodePoints } from '../text/text.ts';
import { timeZoneSchema } from '../time-zones.ts';

/** Those who see the least come first. */
export const userTypes = ['account', 'partner', 'staff'] as const;

export const userTypeSchema = z.enum(userTypes, { error: 'Must be account, partner or staff.' });

export type UserType = z.infer<typeof userTypeSchema>;

export const tenancyKindSchema = z.enum(['account', 'partner']);

export type TenancyKind = z.infer<typeof tenancyKindSchema>;

export const notACursor = 'Must be the nextCursor from the previous page.';

/** The `nextCursor` of the previous page; null for the first page. */
export const cursorSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,256}$/, { error: notACursor })
  .optional()
  .transform((cursor) => cursor ?? null);

export const searchSchema = z
  .string()
  .refine((text) => isWithinCodePoints(text, limits.search), { error: `Must be at most ${limits.search} characters. Shorten it.` })
  .check(checkPrintable)
  .meta({ maxLength: limits.search })
  .default('');

export const daySchema = z.iso
  .date({ error: 'Must be a date in the format YYYY-MM-DD.' })
  .refine((day) => day >= '1970-01-01' && day <= '9998-12-31', { error: 'Must be a date from 1970-01-01 to 9998-12-31.' });

/** Calendar days in a time zone, both included. */
export const dayRange = {
  from: daySchema.optional(),
  to: daySchema.optional(),
  timeZone: timeZoneSchema.default('UTC'),
};

export function isRange({
  value: { from, to },
  issues,
}: z.core.ParsePayload<{ from?: string | undefined; to?: string | undefined }>): void {
  if (from !== undefined && to !== undefined && from > to)
    issues.push({ code: 'custom', path: ['from'], message: 'Must not be after "to".', input: from });
}

/** The number of all matches, up to 10,000. */
export const totals = {
  total: z.number().int(),
  /** Whether there are, or may be, more matches than `total`. */
  totalIsMore: z.boolean(),
};

export const namedSchema = z.object({ id: identifierSchema, name: z.string() });

export type Named = z.infer<typeof namedSchema>;

/** An account, or a partner with all its accounts. */
export const placeSchema = z.object({ kind: tenancyKindSchema, id: identifierSchema, name: z.string() });

/** A query parameter that's off unless its value is `true`. */
export const flagSchema = z
  .enum(['true', 'false'], { error: 'Must be true or false.' })
  .default('false')
  .transform((text) => text === 'true');

/** A page of a list that can be searched by name. In the directory, the search matches only a row's own name, not its parents'. */
export const directoryQuerySchema = z.strictObject({ search: searchSchema, cursor: cursorSchema });

/** Null on the last page. */
export const nextCursorSchema = z.string().nullable();
