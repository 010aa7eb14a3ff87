import { z } from 'zod';
import {
  accountInDirectorySchema,
  accountsSchema,
  activityFacetsSchema,
  activitySchema,
  allCallsSummarySchema,
  apiKeyDetailsSchema,
  apiKeysSchema,
  callDetailsSchema,
  callsSchema,
  callsSummarySchema,
  campaignInDirectorySchema,
  campaignsSchema,
  changedUserSchema,
  createdApiKeySchema,
  createdSetupSchema,
  createdUserSchema,
  deletionSchema,
  directoryAccountSchema,
  directoryAccountsSchema,
  directoryCampaignSchema,
  directoryCampaignsSchema,
  directoryPartnerSchema,
  directoryPartnersSchema,
  identifiedApiKeySchema,
  partnerInDirectorySchema,
  resetPasswordSchema,
  revocationSchema,
  revokedApiKeysSchema,
  type SessionView,
  sessionSchema,
  tenanciesSchema,
  usersSchema,
} from '#contract/console.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { pathTo } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes/console.ts';
import { failed } from './core-answers.ts';
import type { Channels, Deletion, DirectoryEntry, DirectoryKind, DirectoryPage, Result, SignIn } from './ipc.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** @property schema validates the response and returns its value */
export type CoreRequest<Value> = { method: Method; path: string; schema: z.ZodType<Value>; body?: unknown };
export type Send = <Value>(request: CoreRequest<Value>) => Promise<Result<Value>>;

/** Protects a secret while it's visible. */
export type SecretGuard = {
  /** A secret is about to be requested. */
  begin(): void;
  show(secret: string): void;
  /** The secret is no longer visible, or never arrived. */
  end(): Promise<void>;
};

export type CoreChannelsDeps = {
  send: Send;
  guard: SecretGuard;
  /** @returns null if the page can't hash */
  sha256(text: string): Promise<string | null>;
};

/** For a response without a body, or whose body isn't needed. */
const nothing = z.unknown().transform(() => null);

export const requests = {
  getSession: () => get(consoleRoutes.showSession.path, sessionSchema),
  signOut: (): CoreRequest<null> => ({ method: 'DELETE', path: consoleRoutes.showSession.path, schema: nothing }),
};

const partnerEntry = directoryPartnerSchema.transform(({ id, name, accounts }): DirectoryEntry => {
  return { kind: 'partner', id, name, partner: null, account: null, count: accounts };
});
const accountEntry = directoryAccountSchema.transform(({ id, name, partner, campaigns }): DirectoryEntry => {
  return { kind: 'account', id, name, partner, account: null, count: campaigns };
});
const campaignEntry = directoryCampaignSchema.transform(({ id, name, partner, account }): DirectoryEntry => {
  return { kind: 'campaign', id, name, partner, account, count: null };
});

/** The paths of partners, accounts and campaigns, and how to convert their responses to entries. */
const directory = {
  partner: {
    list: consoleRoutes.listDirectoryPartners.path,
    one: consoleRoutes.renamePartner.path,
    parent: null,
    page: directoryPartnersSchema
      .extend({ partners: z.array(partnerEntry) })
      .transform(({ partners, nextCursor }): DirectoryPage => ({ entries: partners, nextCursor })),
    entry: partnerInDirectorySchema.extend({ partner: partnerEntry }).transform(({ partner }) => partner),
  },
  account: {
    list: consoleRoutes.listDirectoryAccounts.path,
    one: consoleRoutes.renameAccount.path,
    parent: 'partner',
    page: directoryAccountsSchema
      .extend({ accounts: z.array(accountEntry) })
      .transform(({ accounts, nextCursor }): DirectoryPage => ({ entries: accounts, nextCursor })),
    entry: accountInDirectorySchema.extend({ account: accountEntry }).transform(({ account }) => account),
  },
  campaign: {
    list: consoleRoutes.listDirectoryCampaigns.path,
    one: consoleRoutes.renameCampaign.path,
    parent: 'account',
    page: directoryCampaignsSchema
      .extend({ campaigns: z.array(campaignEntry) })
      .transform(({ campaigns, nextCursor }): DirectoryPage => ({ entries: campaigns, nextCursor })),
    entry: campaignInDirectorySchema.extend({ campaign: campaignEntry }).transform(({ campaign }) => campaign),
  },
} as const satisfies Record<DirectoryKind, object>;

/** In ms. During a rush, the core prefers clients that come back. */
const signInPatience = 10_000;

export async function signInAt(send: Send, { email, password }: SignIn): Promise<Result<SessionView>> {
  const start = performance.now();
  const attempt = () => send(post(consoleRoutes.showSession.path, sessionSchema, { email, password }));
  let answer = await attempt();
  for (let wait = shortWaitIn(answer); wait > 0 && performance.now() - start + wait < signInPatience; wait = shortWaitIn(answer)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    answer = await attempt();
  }
  const isWrong = !answer.ok && answer.failure.kind === 'session-ended';
  return isWrong ? refused('password', 'Incorrect email address or password.') : answer;
}

/** @returns the ms until the next attempt; 0 if the sign-in was processed, or the wait would be minutes */
function shortWaitIn(answer: Result<unknown>): number {
  if (answer.ok || answer.failure.kind !== 'refused' || answer.failure.code !== 'too-many-requests') return 0;
  return (answer.failure.retryAfterSeconds ?? 0) * 1_000;
}

/** The channels that send requests to the core, the same from the main process and from a browser. */
export function coreChannels({ send, guard, sha256 }: CoreChannelsDeps) {
  async function requestSecret<Value>(request: CoreRequest<Value>, secretOf: (value: Value) => string): Promise<Result<Value>> {
    guard.begin();
    const answer = await send(request);
    if (answer.ok) guard.show(secretOf(answer.value));
    else await guard.end();
    return answer;
  }

  return {
    changePassword: (input) => send(post(consoleRoutes.changePassword.path, nothing, input)),

    selectTenancy: (choice) => send({ method: 'PUT', path: consoleRoutes.selectTenancy.path, schema: sessionSchema, body: choice }),
    async setUp(names) {
      const made = await send(post(consoleRoutes.setUp.path, createdSetupSchema, names));
      return made.ok ? send(requests.getSession()) : made;
    },
    searchTenancies: (search) => send(get(`${consoleRoutes.searchTenancies.path}${toQuery({ search })}`, tenanciesSchema)),

    listApiKeys: () => send(get(consoleRoutes.listApiKeys.path, apiKeysSchema)),
    listOlderApiKeys: (olderThan) => send(get(`${consoleRoutes.listApiKeys.path}${toQuery({ olderThan })}`, apiKeysSchema)),
    createApiKey: (input) => requestSecret(post(consoleRoutes.listApiKeys.path, createdApiKeySchema, input), ({ keyValue }) => keyValue),
    dismissSecret: () => guard.end(),
    previewRevocation: (id) => send(get(pathTo(consoleRoutes.previewRevocation, { id }), revocationSchema)),
    revokeApiKey: (deletion) => send(deleteAt(consoleRoutes.revokeApiKey, deletion)),
    getApiKey: ({ id, timeZone }) => send(get(`${pathTo(consoleRoutes.showApiKey, { id })}${toQuery({ timeZone })}`, apiKeyDetailsSchema)),
    revokeApiKeys: (input) => send(post(consoleRoutes.revokeApiKeys.path, revokedApiKeysSchema, input)),
    async identifyApiKey(pasted) {
      const keyValue = pasted.trim();
      if (!isKeyValue(keyValue)) {
        return refused(
          'keyValue',
          'This isn’t a key value. A key value starts with svc_sk_live_ and is 61 characters long. Paste the whole value.',
        );
      }
      const digest = await sha256(keyValue);
      if (digest === null)
        return refused('keyValue', 'Your browser allows this only over HTTPS. Open the console at an https address and try again.');
      const answer = await send(post(consoleRoutes.identifyApiKey.path, identifiedApiKeySchema, { sha256: digest }));
      return answer.ok ? { ok: true, value: answer.value.apiKey } : answer;
    },

    listAccounts: (query) => send(get(`${consoleRoutes.listAccounts.path}${toQuery(query)}`, accountsSchema)),
    listCampaigns: (query) => send(get(`${consoleRoutes.listCampaigns.path}${toQuery(query)}`, campaignsSchema)),
    listCalls: ({ campaignId: id, ...query }) =>
      send(get(`${pathTo(consoleRoutes.listCalls, { id })}${toQuery(inDays(query))}`, callsSchema)),
    getCall: ({ campaignId: id, contactId }) => send(get(pathTo(consoleRoutes.showCall, { id, contactId }), callDetailsSchema)),
    summarizeCalls: ({ campaignId: id, timeZone }) =>
      send(get(`${pathTo(consoleRoutes.summarizeCalls, { id })}${toQuery({ timeZone })}`, callsSummarySchema)),

    summarizeAllCalls: (query) => send(get(`${consoleRoutes.summarizeAllCalls.path}${toQuery(query)}`, allCallsSummarySchema)),

    listDirectory: ({ kind, parentId, search, cursor }) => {
      const { list, parent, page } = directory[kind];
      return send(get(`${list}${toQuery({ ...(parent === null ? {} : { [parent]: parentId }), search, cursor })}`, page));
    },
    createEntry: ({ kind, name, parentId }) => {
      const { list, parent, entry } = directory[kind];
      return send(post(list, entry, { name, ...(parent === null ? {} : { [`${parent}Id`]: parentId }) }));
    },
    renameEntry: ({ kind, id, name }) => {
      const { one, entry } = directory[kind];
      return send({ method: 'PATCH', path: pathTo({ path: one }, { id }), schema: entry, body: { name } });
    },

    listUsers: (query) => send(get(`${consoleRoutes.listUsers.path}${toQuery(query)}`, usersSchema)),
    createUser: (input) => requestSecret(post(consoleRoutes.listUsers.path, createdUserSchema, input), ({ password }) => password),
    resetPassword: (id) =>
      requestSecret(post(pathTo(consoleRoutes.resetPassword, { id }), resetPasswordSchema), ({ password }) => password),
    previewDeletion: (id) => send(get(pathTo(consoleRoutes.previewDeletion, { id }), deletionSchema)),
    changeUser: ({ id, ...change }) =>
      send({ method: 'PATCH', path: pathTo(consoleRoutes.deleteUser, { id }), schema: changedUserSchema, body: change }),
    deleteUser: (deletion) => send(deleteAt(consoleRoutes.deleteUser, deletion)),

    recordExport: (input) => send(post(consoleRoutes.recordExport.path, nothing, input)),
    listActivity: (query) => send(get(`${consoleRoutes.listActivity.path}${toQuery(inDays(query))}`, activitySchema)),
    listActivityFacets: () => send(get(consoleRoutes.listActivityFacets.path, activityFacetsSchema)),
  } satisfies Partial<Channels>;
}

export function refused(path: string, message: string): Result<never> {
  return failed({ kind: 'refused', code: 'invalid', detail: message, errors: [{ path, message }], retryAfterSeconds: null });
}

function get<Value>(path: string, schema: z.ZodType<Value>): CoreRequest<Value> {
  return { method: 'GET', path, schema };
}

function post<Value>(path: string, schema: z.ZodType<Value>, body?: unknown): CoreRequest<Value> {
  return { method: 'POST', path, schema, ...(body === undefined ? {} : { body }) };
}

function deleteAt(
  route: typeof consoleRoutes.revokeApiKey | typeof consoleRoutes.deleteUser,
  { id, cancelQueuedCalls }: Deletion,
): CoreRequest<null> {
  return { method: 'DELETE', path: pathTo(route, { id }) + (cancelQueuedCalls ? '?cancelQueuedCalls=true' : ''), schema: nothing };
}

/** Sends the time zone only with a date, because earlier cores don't accept it. */
function inDays<Query extends { from: string; to: string; timeZone: string }>(query: Query): Query {
  return query.from === '' && query.to === '' ? { ...query, timeZone: '' } : query;
}

function toQuery(parameters: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== '') query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}
