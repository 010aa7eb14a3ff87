import { z } from 'zod';
import { identifierSchema, instantSchema } from '../text/text.ts';

export const doNotCallReasons = ['asked', 'complaint', 'wrong-number', 'imported'] as const;
export type DoNotCallReason = (typeof doNotCallReasons)[number];

export const doNotCallReasonLabels: Readonly<Record<DoNotCallReason, string>> = {
  asked: 'Asked not to be called',
  complaint: 'Complained',
  'wrong-number': 'Wrong number',
  imported: 'Imported',
};

export const doNotCallSources = ['console', 'outcome', 'admin'] as const;
export type DoNotCallSource = (typeof doNotCallSources)[number];

export const doNotCallReasonSchema = z.enum(doNotCallReasons, { error: `Must be one of ${doNotCallReasons.join(', ')}.` });

/** In one request. The console splits a longer list. On SQLite, placing a call waits until all numbers of a request have been written. */
export const maxAddedNumbers = 100;

export const doNotCallEntrySchema = z.object({
  id: identifierSchema,
  phone: z.string(),
  /** The account, or the partner with all its accounts, that must not call the number. */
  scope: z.object({ kind: z.enum(['account', 'partner']), id: identifierSchema, name: z.string() }),
  reason: z.enum(doNotCallReasons),
  note: z.string().nullable(),
  source: z.enum(doNotCallSources),
  /** The call in which the person asked not to be called. */
  call: z.object({ campaignId: identifierSchema, contactId: identifierSchema }).nullable(),
  /** Null for the provider, and for the operator on the server itself. */
  createdBy: z.object({ id: identifierSchema, name: z.string() }).nullable(),
  createdAt: instantSchema,
  /** When the entry expires; null if it doesn't. */
  endsAt: instantSchema.nullable(),
});
export type DoNotCallEntryView = z.infer<typeof doNotCallEntrySchema>;
