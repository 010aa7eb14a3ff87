import { z } from 'zod';
import { namedSchema } from '../console/common.ts';
import { limits } from '../limits.ts';
import { routeBy } from '../route.ts';
import { cutCodePoints, identifierSchema, inputInstantSchema, instantSchema, textSchema } from '../text/text.ts';

/** The core POSTs this to a provider for each due call. */
export const handoffSchema = z.object({
  /** The call's contact ID: identifies one call permanently, even if the hand-off is repeated. */
  handoffId: identifierSchema,
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  /** Validated when the call was placed, by the rules at that time. */
  contact: z.object({ phone: z.string(), name: z.string().optional(), timeZone: z.string().optional() }),
  variables: z.record(z.string(), z.string()),
  placedAt: instantSchema,
  /** `settings` were chosen for the campaign, such as the agent and the number to call from. */
  campaign: namedSchema.extend({ settings: z.record(z.string(), z.string()) }),
  account: namedSchema,
  partner: namedSchema,
});
export type Handoff = z.infer<typeof handoffSchema>;

export const outcomeStates = ['completed', 'no_answer', 'busy', 'failed'] as const;
export type OutcomeState = (typeof outcomeStates)[number];

/** Who answered a call, as far as the provider can tell. */
export const answerers = ['person', 'machine', 'unknown'] as const;
export type AnsweredBy = (typeof answerers)[number];

export const outcomeSchema = z.strictObject({
  // The call's contact ID. Any text, because a hand-off that can't exist gets the same 404 as one that doesn't.
  handoffId: z.string(),
  state: z.enum(outcomeStates, { error: `Must be one of ${outcomeStates.join(', ')}.` }),
  detail: z
    .string()
    .overwrite((text) => cutCodePoints(text, limits.detail))
    .pipe(textSchema(limits.detail))
    .meta({ description: `Free text about the call. Only the first ${limits.detail} characters are kept.` })
    .optional(),
  endedAt: inputInstantSchema.optional(),
  durationSeconds: z.number().min(0).max(86_400).overwrite(Math.round).meta({ description: 'Rounded to whole seconds.' }).optional(),
  answeredBy: z.enum(answerers, { error: `Must be one of ${answerers.join(', ')}.` }).optional(),
  optOut: z
    .boolean()
    .optional()
    .meta({ description: "True if the person asked not to be called again. The number is added to the account's do-not-call list." }),
});
export type Outcome = z.infer<typeof outcomeSchema>;

/**
 * An opt-out counts even if other fields are invalid, because the person would be called again before the provider is fixed. Some languages
 * and databases write true as text or a number.
 */
export const optOutSchema = z.object({ handoffId: z.string(), optOut: z.literal([true, 1, 'true', 'True', 'TRUE', '1', 'yes']) });

export const dialerRoutes = {
  reportOutcome: routeBy('signature', 'POST', '/dialer/outcomes', {
    summary: 'Report the outcome of a call. Safe to repeat: an outcome is never overwritten',
    body: outcomeSchema,
    problems: ['not-found'],
  }),
} as const;
