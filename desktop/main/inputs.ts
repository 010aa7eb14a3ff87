import { z } from 'zod';
import { callStates } from '#contract/calls.ts';
import { tenancyKindSchema, userTypeSchema } from '#contract/console.ts';
import { expirationSchema } from '#contract/expiry.ts';
import { identifierSchema } from '#contract/text.ts';
import type { Channels } from '../ipc.ts';

const text = z.string().max(10_000);
const nothing = z.undefined();
const removal = z.strictObject({ id: identifierSchema, cancelQueuedCalls: z.boolean() });

type Inputs = { readonly [Name in keyof Channels]: z.ZodType<Parameters<Channels[Name]>[0]> };

/**
 * The shape of what the renderer may send on each channel. What a form's text must be like is for the core to say, in words that come
 * back to the form: here it only has to be text.
 */
export const inputs: Inputs = {
  begin: nothing,
  signIn: z.strictObject({ server: text, email: text, password: text, keepSignedIn: z.boolean().nullable() }),
  signOut: nothing,
  changePassword: z.strictObject({ currentPassword: text, newPassword: text }),
  selectTenancy: z.union([z.strictObject({ kind: tenancyKindSchema, id: identifierSchema }), z.strictObject({ kind: z.null() })]),
  searchTenancies: text,
  listApiKeys: nothing,
  createApiKey: z.strictObject({ name: text, expiration: expirationSchema, timeZone: text }),
  secretIsGone: nothing,
  previewRevocation: identifierSchema,
  revokeApiKey: removal,
  identifyApiKey: text,
  listAccounts: nothing,
  listCampaigns: nothing,
  listCalls: z.strictObject({
    campaignId: identifierSchema,
    state: z.enum(callStates).nullable(),
    search: text,
    cursor: identifierSchema.nullable(),
  }),
  listUsers: nothing,
  addUser: z.strictObject({ email: text, name: text, userType: userTypeSchema, accountId: identifierSchema.optional() }),
  previewDeletion: identifierSchema,
  deleteUser: removal,
  listActivity: identifierSchema.nullable(),
  copySecret: text,
  closeWindow: nothing,
};
