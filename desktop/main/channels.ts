import { hash } from 'node:crypto';
import {
  accountsSchema,
  activitySchema,
  apiKeysSchema,
  callsSchema,
  campaignsSchema,
  createdApiKeySchema,
  createdUserSchema,
  deletionSchema,
  identifiedApiKeySchema,
  revocationSchema,
  sessionSchema,
  tenanciesSchema,
  usersSchema,
} from '#contract/console.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { paths, pathTo } from '#contract/paths.ts';
import { readServerAddress } from '#contract/server-address.ts';
import type { Channels, Failure, Removal, Result } from '../ipc.ts';
import type { SecretClipboard } from './clipboard.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import type { KeptSessionFile } from './kept-session.ts';
import type { SettingsFile } from './settings.ts';

export type ChannelDeps = {
  settings: SettingsFile;
  kept: KeptSessionFile;
  clipboard: SecretClipboard;
  /** The window, as far as a key value that shows in it is concerned. */
  window: { guardKeyValue(shows: boolean): void; close(): void };
};

/** What the renderer may ask for: the session with the core is held here, and the renderer never sees its cookie. */
export function createChannels({ settings, kept, clipboard, window }: ChannelDeps): Channels {
  let core: CoreClient | null = null;
  let isKept = false;

  const signedIn = (): CoreClient => core ?? noCore;

  /** Keeps the session, or forgets the one that was kept. Where that cannot be done, one is signed in all the same. */
  async function keep(client: CoreClient): Promise<void> {
    const keeping = isKept ? kept.keep({ server: client.server, cookies: client.cookies() }) : kept.forget();
    await keeping.catch(() => undefined);
  }

  /** Protects the window before a secret comes, and until the page says that it is gone. */
  async function guarded<Value>(asking: () => Promise<Result<Value>>): Promise<Result<Value>> {
    window.guardKeyValue(true);
    const answer = await asking();
    if (!answer.ok) window.guardKeyValue(false);
    return answer;
  }

  return {
    async begin() {
      const { server, email } = settings.current;
      const remembered = { server, email };
      const [keeping, session] = await Promise.all([kept.keeping(), kept.read()]);
      if (!session) return { remembered, keeping, session: null };
      isKept = true;
      // It may be the next try at the same one, with the last still under way.
      core ??= coreClient(session.server, session.cookies);
      const answer = await core.ask('GET', paths.session, sessionSchema);
      if (!answer.ok && answer.failure.kind === 'session-ended') await kept.forget().catch(() => undefined);
      return { remembered, keeping, session: answer };
    },

    async signIn({ server, email, password, keepSignedIn }) {
      const read = readServerAddress(server.includes('://') ? server : `https://${server}`);
      if (!read.ok) return refused('server', read.problem);
      const client = coreClient(read.address);
      const answer = await client.ask('POST', paths.session, sessionSchema, { email, password });
      if (!answer.ok) {
        await client.close();
        return answer.failure.kind === 'session-ended' ? refused('email', 'The e-mail address or the password is wrong.') : answer;
      }
      await core?.close();
      core = client;
      isKept = keepSignedIn ?? isKept;
      await Promise.all([keep(client), settings.change({ server: read.address, email: email.trim() })]);
      return answer;
    },

    async signOut() {
      const client = signedIn();
      // Signed out here at once, whatever the core says and however long it takes: somebody may sign in anew meanwhile.
      core = null;
      isKept = false;
      await kept.forget().catch(() => undefined);
      const answer = await client.tell('DELETE', paths.session);
      await client.close();
      return answer;
    },

    changePassword: (input) => signedIn().tell('POST', paths.password, input),

    selectTenancy: (choice) => signedIn().ask('PUT', paths.sessionTenancy, sessionSchema, choice),
    searchTenancies: (search) => signedIn().ask('GET', `${paths.tenancies}${queryOf({ search })}`, tenanciesSchema),

    listApiKeys: () => signedIn().ask('GET', paths.apiKeys, apiKeysSchema),
    async createApiKey(input) {
      const answer = await guarded(() => signedIn().ask('POST', paths.apiKeys, createdApiKeySchema, input));
      if (answer.ok) clipboard.know(answer.value.keyValue);
      return answer;
    },
    async secretIsGone() {
      window.guardKeyValue(false);
      await clipboard.dropSelection();
    },
    previewRevocation: (id) => signedIn().ask('GET', pathTo(paths.apiKeyRevocation, { id }), revocationSchema),
    revokeApiKey: (removal) => signedIn().tell('DELETE', removalPath(paths.apiKey, removal)),
    async identifyApiKey(pasted) {
      const keyValue = pasted.trim();
      if (!isKeyValue(keyValue)) {
        return refused('keyValue', 'This is no key value. One begins with svc_sk_live_ and is 61 characters long: was all of it pasted?');
      }
      const sha256 = hash('sha256', keyValue);
      const answer = await signedIn().ask('POST', paths.identifyApiKey, identifiedApiKeySchema, { sha256 });
      return answer.ok ? { ok: true, value: answer.value.apiKey } : answer;
    },

    listAccounts: () => signedIn().ask('GET', paths.accounts, accountsSchema),
    listCampaigns: () => signedIn().ask('GET', paths.campaigns, campaignsSchema),
    listCalls: ({ campaignId: id, state, search, cursor }) =>
      signedIn().ask('GET', `${pathTo(paths.calls, { id })}${queryOf({ state, search, cursor })}`, callsSchema),

    listUsers: () => signedIn().ask('GET', paths.users, usersSchema),
    async addUser(input) {
      const answer = await guarded(() => signedIn().ask('POST', paths.users, createdUserSchema, input));
      if (answer.ok) clipboard.know(answer.value.password);
      return answer;
    },
    previewDeletion: (id) => signedIn().ask('GET', pathTo(paths.userDeletion, { id }), deletionSchema),
    deleteUser: (removal) => signedIn().tell('DELETE', removalPath(paths.user, removal)),

    listActivity: (cursor) => signedIn().ask('GET', `${paths.activity}${queryOf({ cursor })}`, activitySchema),

    copySecret: async (secret) => clipboard.copy(secret),
    closeWindow: async () => window.close(),
  };
}

/** Stands in where nobody has signed in. */
const noCore: CoreClient = {
  server: '',
  ask: async () => ({ ok: false, failure: { kind: 'session-ended' } }),
  tell: async () => ({ ok: false, failure: { kind: 'session-ended' } }),
  cookies: () => ({}),
  close: async () => undefined,
};

function refused(path: string, message: string): { ok: false; failure: Failure } {
  return {
    ok: false,
    failure: { kind: 'refused', code: 'invalid', detail: message, errors: [{ path, message }], retryAfterSeconds: null },
  };
}

function removalPath(path: typeof paths.apiKey | typeof paths.user, { id, cancelQueuedCalls }: Removal): string {
  return pathTo(path, { id }) + (cancelQueuedCalls ? '?cancelQueuedCalls=true' : '');
}

function queryOf(parameters: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== '') query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}
