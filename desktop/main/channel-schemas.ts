import { z } from 'zod';
import { callStates } from '#contract/calls/states.ts';
import { recordExportSchema, tenancyKindSchema, userTypeSchema } from '#contract/console.ts';
import { expirationSchema } from '#contract/expiry.ts';
import { identifierSchema } from '#contract/text/text.ts';
import { type Channels, commands } from '../ipc.ts';

const text = z.string().max(10_000);
const nothing = z.undefined();
const listQuery = { search: text, cursor: identifierSchema.nullable() };
const directoryKind = z.enum(['partner', 'account', 'campaign']);
const days = { from: text, to: text, timeZone: text };
const deletion = z.strictObject({ id: identifierSchema, cancelQueuedCalls: z.boolean() });

type ChannelSchemas = { readonly [Name in keyof Channels]: z.ZodType<Parameters<Channels[Name]>[0]> };

/**
 * The input that the renderer can send on each channel. Form fields are only checked to be text: the core validates them, and the form
 * shows its messages.
 */
export const channelSchemas: ChannelSchemas = {
  getStartupState: nothing,
  listServers: nothing,
  selectServer: text,
  forgetServer: text,
  signIn: z.strictObject({ server: text, email: text, password: text, keepSignedIn: z.boolean().nullable() }),
  signOut: nothing,
  changePassword: z.strictObject({ currentPassword: text.optional(), newPassword: text }),
  selectTenancy: z.union([z.strictObject({ kind: tenancyKindSchema, id: identifierSchema }), z.strictObject({ kind: z.null() })]),
  setUp: z.strictObject({ partner: text, account: text, campaign: text }),
  searchTenancies: text,
  listApiKeys: nothing,
  listOlderApiKeys: identifierSchema,
  createApiKey: z.strictObject({ name: text, expiration: expirationSchema, timeZone: text }),
  dismissSecret: nothing,
  previewRevocation: identifierSchema,
  revokeApiKey: deletion,
  getApiKey: z.strictObject({ id: identifierSchema, timeZone: text }),
  revokeApiKeys: z.strictObject({ ids: z.array(identifierSchema).max(1_000), cancelQueuedCalls: z.boolean() }),
  identifyApiKey: text,
  listAccounts: z.strictObject(listQuery),
  listCampaigns: z.strictObject(listQuery),
  listCalls: z.strictObject({
    campaignId: identifierSchema,
    ...days,
    state: z.enum(callStates).nullable(),
    apiKey: text,
    search: text,
    cursor: identifierSchema.nullable(),
  }),
  getCall: z.strictObject({ campaignId: identifierSchema, contactId: identifierSchema }),
  summarizeCalls: z.strictObject({ campaignId: identifierSchema, timeZone: text }),
  summarizeAllCalls: z.strictObject({ ...listQuery, timeZone: text }),
  listDirectory: z.strictObject({ ...listQuery, kind: directoryKind, parentId: identifierSchema.nullable() }),
  createEntry: z.strictObject({ kind: directoryKind, name: text, parentId: text }),
  renameEntry: z.strictObject({ kind: directoryKind, id: identifierSchema, name: text }),
  listUsers: z.strictObject(listQuery),
  createUser: z.strictObject({ email: text, name: text, userType: userTypeSchema, accountId: identifierSchema.optional() }),
  resetPassword: identifierSchema,
  previewDeletion: identifierSchema,
  changeUser: z.strictObject({
    id: identifierSchema,
    name: text.optional(),
    disabled: z.boolean().optional(),
    accountId: identifierSchema.nullable().optional(),
  }),
  deleteUser: deletion,
  listActivity: z.strictObject({ ...days, actor: text, action: text, cursor: identifierSchema.nullable() }),
  listActivityFacets: nothing,
  recordExport: recordExportSchema,
  copySecret: text,
  copyText: text,
  saveFile: z.strictObject({ name: z.string().regex(/^[a-z-]{1,40}\.csv$/), text: z.string().max(50_000_000) }),
  offerCommands: z.strictObject({ commands: z.array(z.enum(commands)).max(commands.length) }),
  closeWindow: nothing,
};
