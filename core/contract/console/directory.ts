import { z } from 'zod';
import { limits } from '../limits.ts';
import { route } from '../route.ts';
import { isObject } from '../text/json.ts';
import { identifierSchema, lineSchema, namedTexts, normalizeLine, textSchema } from '../text/text.ts';
import { directoryQuerySchema, namedSchema, nextCursorSchema } from './common.ts';

export const accountsSchema = z.object({ accounts: z.array(namedSchema), nextCursor: nextCursorSchema });

export type AccountsView = z.infer<typeof accountsSchema>;

export const campaignsSchema = z.object({
  /** Sorted by account and name. The search includes both names, and finds a campaign by its ID. */
  campaigns: z.array(z.object({ id: identifierSchema, name: z.string(), account: namedSchema })),
  nextCursor: nextCursorSchema,
});

export type CampaignsView = z.infer<typeof campaignsSchema>;

export const nameSchema = lineSchema(limits.name, 'Enter a name.');

export const setupSchema = z.strictObject({ partner: nameSchema, account: nameSchema, campaign: nameSchema });

export type Setup = z.infer<typeof setupSchema>;

export const createdSetupSchema = z.object({ partner: namedSchema, account: namedSchema, campaign: namedSchema });

const directoryPartnerSchema = namedSchema.extend({ accounts: z.number().int() });

const directoryAccountSchema = namedSchema.extend({ partner: namedSchema, campaigns: z.number().int() });

const maxSettings = 20;
const settingName = 64;
/** Short texts for the provider, such as the agent and the number to call from. */
const settingsSchema = namedTexts('setting', maxSettings)
  .refine((settings) => !isObject(settings) || !hasTwins(Object.keys(settings).map((name) => normalizeLine(name, settingName))), {
    error: 'Each setting must have another name.',
  })
  .pipe(z.record(lineSchema(settingName, 'Must have a name.'), textSchema(1_000)))
  .meta({
    type: 'object',
    maxProperties: maxSettings,
    propertyNames: { minLength: 1, maxLength: settingName },
    additionalProperties: { type: 'string', maxLength: 1_000 },
  });

/** Whether two names are the same, such as `agent` and `agent ` without its space. */
function hasTwins(names: readonly string[]): boolean {
  return new Set(names).size < names.length;
}

const directoryCampaignSchema = namedSchema.extend({
  account: namedSchema,
  partner: namedSchema,
  settings: z.record(z.string(), z.string()),
});

/** Sorted by name. */
export const directoryPartnersSchema = z.object({ partners: z.array(directoryPartnerSchema), nextCursor: nextCursorSchema });

export type DirectoryPartnersView = z.infer<typeof directoryPartnersSchema>;

/** Sorted by the names of partner and account. */
export const directoryAccountsSchema = z.object({ accounts: z.array(directoryAccountSchema), nextCursor: nextCursorSchema });

export type DirectoryAccountsView = z.infer<typeof directoryAccountsSchema>;

/** Sorted by the names of partner, account and campaign. */
export const directoryCampaignsSchema = z.object({ campaigns: z.array(directoryCampaignSchema), nextCursor: nextCursorSchema });

export type DirectoryCampaignsView = z.infer<typeof directoryCampaignsSchema>;

export const nameInDirectorySchema = z.strictObject({ name: nameSchema });

/** Changes the fields that are sent. `settings` replaces all settings. */
export const changeCampaignSchema = z.strictObject({ name: nameSchema.optional(), settings: settingsSchema.optional() });
export type ChangeCampaign = z.infer<typeof changeCampaignSchema>;

export const createAccountSchema = z.strictObject({ name: nameSchema, partnerId: identifierSchema });

export const createCampaignSchema = z.strictObject({ name: nameSchema, accountId: identifierSchema });

export const partnerInDirectorySchema = z.object({ partner: directoryPartnerSchema });

export const accountInDirectorySchema = z.object({ account: directoryAccountSchema });

export const campaignInDirectorySchema = z.object({ campaign: directoryCampaignSchema });

export const directoryRoutes = {
  listAccounts: route('GET', '/console/accounts', {
    summary: 'List accounts',
    query: directoryQuerySchema,
    answer: accountsSchema,
  }),
  listCampaigns: route('GET', '/console/campaigns', {
    summary: 'List campaigns',
    query: directoryQuerySchema,
    answer: campaignsSchema,
  }),
  setUp: route('POST', '/console/setup', {
    summary: 'Create the first partner, account and campaign, and select the account (staff only, if no partner exists yet)',
    body: setupSchema,
    answer: createdSetupSchema,
    status: 201,
    problems: ['forbidden', 'conflict'],
  }),
  listDirectoryPartners: route('GET', '/console/directory/partners', {
    summary: 'List the partners that you manage (staff only)',
    query: directoryQuerySchema,
    answer: directoryPartnersSchema,
    problems: ['forbidden'],
  }),
  createPartner: route('POST', '/console/directory/partners', {
    summary: 'Create a partner (staff only)',
    body: nameInDirectorySchema,
    answer: partnerInDirectorySchema,
    status: 201,
    problems: ['forbidden'],
  }),
  renamePartner: route('PATCH', '/console/directory/partners/:id', {
    summary: 'Rename a partner (staff only)',
    body: nameInDirectorySchema,
    answer: partnerInDirectorySchema,
    problems: ['forbidden'],
  }),
  deletePartner: route('DELETE', '/console/directory/partners/:id', {
    summary: 'Delete a partner that has no accounts, users, API keys or do-not-call numbers (staff only)',
    problems: ['forbidden', 'conflict'],
  }),
  listDirectoryAccounts: route('GET', '/console/directory/accounts', {
    summary: "List the accounts that you manage (staff, and partner users who aren't limited to one account)",
    query: directoryQuerySchema.extend({ partner: identifierSchema.optional() }),
    answer: directoryAccountsSchema,
    problems: ['forbidden'],
  }),
  createAccount: route('POST', '/console/directory/accounts', {
    summary: "Create an account (staff, and partner users who aren't limited to one account)",
    body: createAccountSchema,
    answer: accountInDirectorySchema,
    status: 201,
    problems: ['forbidden'],
  }),
  renameAccount: route('PATCH', '/console/directory/accounts/:id', {
    summary: "Rename an account (staff, and partner users who aren't limited to one account)",
    body: nameInDirectorySchema,
    answer: accountInDirectorySchema,
    problems: ['forbidden'],
  }),
  deleteAccount: route('DELETE', '/console/directory/accounts/:id', {
    summary:
      "Delete an account that has no campaigns, users, API keys or do-not-call numbers (staff, and partner users who aren't limited to one account)",
    problems: ['forbidden', 'conflict'],
  }),
  listDirectoryCampaigns: route('GET', '/console/directory/campaigns', {
    summary: "List the campaigns that you manage (staff, and partner users who aren't limited to one account)",
    query: directoryQuerySchema.extend({ account: identifierSchema.optional() }),
    answer: directoryCampaignsSchema,
    problems: ['forbidden'],
  }),
  createCampaign: route('POST', '/console/directory/campaigns', {
    summary: "Create a campaign (staff, and partner users who aren't limited to one account)",
    body: createCampaignSchema,
    answer: campaignInDirectorySchema,
    status: 201,
    problems: ['forbidden'],
  }),
  changeCampaign: route('PATCH', '/console/directory/campaigns/:id', {
    summary: "Change a campaign's name or its settings for the provider (staff, and partner users who aren't limited to one account)",
    body: changeCampaignSchema,
    answer: campaignInDirectorySchema,
    problems: ['forbidden'],
  }),
  deleteCampaign: route('DELETE', '/console/directory/campaigns/:id', {
    summary: "Delete a campaign that has no calls (staff, and partner users who aren't limited to one account)",
    problems: ['forbidden', 'conflict'],
  }),
} as const;
