import { z } from 'zod';
import { limits } from '../limits.ts';
import { identifierSchema, inputInstantSchema, instantSchema, textSchema } from '../text/text.ts';

/** The core POSTs this to a provider for each due call. */
export const handoffSchema = z.object({
  /** Identifies one call permanently, even if the hand-off is repeated. */
  handoffId: identifierSchema,
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  /** Validated when the call was placed, by the rules at that time. */
  contact: z.object({ phone: z.string(), name: z.string().optional(), timeZone: z.string().optional() }),
  variables: z.record(z.string(), z.string()),
  placedAt: instantSchema,
});
export type Handoff = z.infer<typeof handoffSchema>;

export const outcomeStates = ['completed', 'no_answer', 'busy', 'failed'] as const;
export type OutcomeState = (typeof outcomeStates)[number];

/** A provider reports this when a call is over. */
export const outcomeSchema = z.strictObject({
  handoffId: identifierSchema,
  state: z.enum(outcomeStates, { error: `Must be one of ${outcomeStates.join(', ')}.` }),
  detail: textSchema(limits.detail).optional(),
  endedAt: inputInstantSchema.optional(),
  durationSeconds: z.number().int().min(0).max(86_400).optional(),
  optOut: z
    .boolean()
    .optional()
    .meta({ description: "True if the person asked not to be called again. The number is added to the account's do-not-call list." }),
});
export type Outcome = z.infer<typeof outcomeSchema>;
