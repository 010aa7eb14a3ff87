import { z } from 'zod';
import { route } from '../route.ts';
import { identifierSchema, instantSchema } from '../text/text.ts';
import { cursorSchema, dayRange, isRange, namedSchema, searchSchema, totals } from './common.ts';

export const auditActions = [
  ...(['session.started', 'session.ended', 'session.refused', 'session.revoked', 'tenancy.selected'] as const),
  ...(['session.refused-unknown', 'session.refused-disabled', 'session.refused-unverified', 'session.refused-other-person'] as const),
  ...(['user.added', 'user.changed', 'user.disabled', 'user.enabled', 'user.deleted', 'user.linked', 'user.unlinked'] as const),
  ...(['second-factor.enabled', 'second-factor.removed', 'second-factor.reset', 'second-factor.refused'] as const),
  ...(['recovery-code.used', 'recovery-codes.renewed'] as const),
  ...(['password.changed', 'password.reset', 'api-key.created', 'api-key.limited', 'api-key.refused', 'api-key.revoked'] as const),
  ...(['partner.added', 'partner.changed', 'account.added', 'account.changed', 'campaign.added', 'campaign.changed'] as const),
  ...(['partner.deleted', 'account.deleted', 'campaign.deleted'] as const),
  ...(['contact.erased', 'contact.exported', 'list.exported'] as const),
  ...(['retention.run', 'backup.created', 'audit.pruned', 'clock.accepted'] as const),
  ...(['do-not-call.added', 'do-not-call.imported', 'do-not-call.lifted', 'calling-hours.changed', 'numbers.changed'] as const),
  ...(['dialing.stopped', 'dialing.resumed', 'pace.changed', 'contact-limits.changed'] as const),
] as const;

export type AuditAction = (typeof auditActions)[number];

const activityFilter = {
  ...dayRange,
  /** The ID of the user who acted, or `operator` for the operator on the server itself. */
  actor: identifierSchema.optional(),
  action: z
    .string()
    .refine((action) => auditActions.some((known) => known === action), { error: `Must be one of ${auditActions.join(', ')}.` })
    .meta({ enum: [...auditActions] })
    .optional(),
  subject: identifierSchema.optional(),
  /** Part of the subject's name, the actor's name, the detail or the address, without regard to case and accents; or an ID. */
  search: searchSchema,
};

/** The value of `actor` for the operator. */
export const operatorActor = 'operator';

/** If a request or sign-in was refused, it isn't known who made it. */
export function missingActorName(action: string): string {
  return action.includes('.refused') ? 'Someone' : 'The operator';
}

/** The address of an event by staff, for everyone else: only staff see from where other staff act. */
export const staffAddress = 'staff';

/** Deleted users have no email address. Only staff can see the email addresses of staff. */
const actorSchema = namedSchema.extend({ email: z.string().optional() });

export const eventSchema = z.object({
  id: identifierSchema,
  at: instantSchema,
  /** Null for the operator on the server itself. */
  actor: actorSchema.nullable(),
  action: z.string(),
  subject: z.object({ kind: z.string(), id: identifierSchema, name: z.string() }),
  /** The network address; `local` for the operator; `staff` if the viewer can't see the address. */
  address: z.string(),
  /** The change, or the reason for it. */
  detail: z.string().optional(),
});

export type EventView = z.infer<typeof eventSchema>;

export const activitySchema = z.object({ events: z.array(eventSchema), nextCursor: z.string().nullable(), ...totals });

export type ActivityView = z.infer<typeof activitySchema>;

/** The filter values that occur among the events in the viewer's scope. */
export const activityFacetsSchema = z.object({
  /** The users who acted, with their current names, and the operator as `operator`. */
  actors: z.array(actorSchema),
  actions: z.array(z.string()),
});

export type ActivityFacetsView = z.infer<typeof activityFacetsSchema>;

/** The console has to report that it saved a list as a file, because the core sees only requests for the list. */
export const recordExportSchema = z.strictObject({
  list: z.enum(['api-keys', 'calls', 'users', 'activity'], { error: 'Must be api-keys, calls, users or activity.' }),
  rows: z.number().int().min(0).max(10_000_000),
});

export type RecordExport = z.infer<typeof recordExportSchema>;

export const activityRoutes = {
  listActivity: route('GET', '/console/activity', {
    summary: 'List events, newest first',
    query: z.strictObject({ ...activityFilter, cursor: cursorSchema }).check(isRange),
    answer: activitySchema,
  }),
  listActivityFacets: route('GET', '/console/activity/facets', {
    summary: 'List the users and actions that occur in the activity list',
    answer: activityFacetsSchema,
  }),
  exportActivity: route('GET', '/console/activity.csv', {
    summary: 'Export events. A complete file ends with the line `# complete, N rows`',
    query: z.strictObject(activityFilter).check(isRange),
    answer: 'csv',
  }),
  recordExport: route('POST', '/console/exports', {
    summary: 'Record that a list was exported',
    body: recordExportSchema,
  }),
} as const;
