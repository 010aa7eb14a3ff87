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
import type { Channels, Command, Deletion, Failure, Result } from '../ipc.ts';
import type { SecretClipboard } from './clipboard.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import type { SessionStore } from './session-store.ts';
import type { SettingsFile } from './settings.ts';
import type { ConsoleWindow } from './window.ts';

export type ChannelDeps = {
  settings: SettingsFile;
  sessionStore: SessionStore;
  clipboard: SecretClipboard;
  window: Pick<ConsoleWindow, 'setSecretVisible' | 'saveFile' | 'close'>;
  enableCommands: (offered: readonly Command[]) => void;
};

/** Implements the channels. It holds the session with the core: the renderer never sees its cookie. */
export function createChannels({ settings, sessionStore, clipboard, window, enableCommands }: ChannelDeps): Channels {
  let core: CoreClient | null = null;
  let staysSignedIn = false;

  const currentClient = (): CoreClient => core ?? signedOutClient;

  /** Stores the session, or deletes the stored one. A failure must not stop the user from signing in. */
  async function storeSession(client: CoreClient): Promise<void> {
    const done = staysSignedIn ? sessionStore.write({ server: client.server, cookies: client.cookies() }) : sessionStore.delete();
    await done.catch(() => undefined);
  }

  /** Protects the window before a secret arrives. The page calls `dismissSecret` when it no longer shows. */
  async function withProtectedWindow<Value>(request: () => Promise<Result<Value>>): Promise<Result<Value>> {
    window.setSecretVisible(true);
    const answer = await request();
    if (!answer.ok) window.setSecretVisible(false);
    return answer;
  }

  return {
    async getStartupState() {
      const { server, email } = settings.current;
      const remembered = { server, email };
      const [persistence, session] = await Promise.all([sessionStore.persistence(), sessionStore.read()]);
      if (!session) return { remembered, persistence, session: null };
      staysSignedIn = true;
      // The page retries while the core does not answer: keep one client.
      core ??= coreClient(session.server, session.cookies);
      const answer = await core.requestJson('GET', paths.session, sessionSchema);
      if (!answer.ok && answer.failure.kind === 'session-ended') await sessionStore.delete().catch(() => undefined);
      return { remembered, persistence, session: answer };
    },

    async signIn({ server, email, password, keepSignedIn }) {
      const read = readServerAddress(server.includes('://') ? server : `https://${server}`);
      if (!read.ok) return refused('server', read.problem);
      const client = coreClient(read.address);
      const answer = await client.requestJson('POST', paths.session, sessionSchema, { email, password });
      if (!answer.ok) {
        await client.close();
        return answer.failure.kind === 'session-ended' ? refused('password', 'The e-mail address or the password is wrong.') : answer;
      }
      await core?.close();
      core = client;
      staysSignedIn = keepSignedIn ?? staysSignedIn;
      await Promise.all([storeSession(client), settings.change({ server: read.address, email: email.trim() })]);
      return answer;
    },

    async signOut() {
      const client = currentClient();
      // Does not wait for the core: somebody may sign in again meanwhile.
      core = null;
      staysSignedIn = false;
      await sessionStore.delete().catch(() => undefined);
      const answer = await client.requestEmpty('DELETE', paths.session);
      await client.close();
      return answer;
    },

    changePassword: (input) => currentClient().requestEmpty('POST', paths.password, input),

    selectTenancy: (choice) => currentClient().requestJson('PUT', paths.sessionTenancy, sessionSchema, choice),
    searchTenancies: (search) => currentClient().requestJson('GET', `${paths.tenancies}${queryOf({ search })}`, tenanciesSchema),

    listApiKeys: () => currentClient().requestJson('GET', paths.apiKeys, apiKeysSchema),
    async createApiKey(input) {
      const answer = await withProtectedWindow(() => currentClient().requestJson('POST', paths.apiKeys, createdApiKeySchema, input));
      if (answer.ok) clipboard.trackVisible(answer.value.keyValue);
      return answer;
    },
    async dismissSecret() {
      window.setSecretVisible(false);
      await clipboard.clearSelection();
    },
    previewRevocation: (id) => currentClient().requestJson('GET', pathTo(paths.apiKeyRevocation, { id }), revocationSchema),
    revokeApiKey: (deletion) => currentClient().requestEmpty('DELETE', deletionPath(paths.apiKey, deletion)),
    async identifyApiKey(pasted) {
      const keyValue = pasted.trim();
      if (!isKeyValue(keyValue)) {
        return refused('keyValue', 'This is not a key value. A key value starts with svc_sk_live_ and has 61 characters. Paste all of it.');
      }
      const sha256 = hash('sha256', keyValue);
      const answer = await currentClient().requestJson('POST', paths.identifyApiKey, identifiedApiKeySchema, { sha256 });
      return answer.ok ? { ok: true, value: answer.value.apiKey } : answer;
    },

    listAccounts: () => currentClient().requestJson('GET', paths.accounts, accountsSchema),
    listCampaigns: () => currentClient().requestJson('GET', paths.campaigns, campaignsSchema),
    listCalls: ({ campaignId: id, state, search, cursor }) =>
      currentClient().requestJson('GET', `${pathTo(paths.calls, { id })}${queryOf({ state, search, cursor })}`, callsSchema),

    listUsers: () => currentClient().requestJson('GET', paths.users, usersSchema),
    async createUser(input) {
      const answer = await withProtectedWindow(() => currentClient().requestJson('POST', paths.users, createdUserSchema, input));
      if (answer.ok) clipboard.trackVisible(answer.value.password);
      return answer;
    },
    previewDeletion: (id) => currentClient().requestJson('GET', pathTo(paths.userDeletion, { id }), deletionSchema),
    deleteUser: (deletion) => currentClient().requestEmpty('DELETE', deletionPath(paths.user, deletion)),

    listActivity: (cursor) => currentClient().requestJson('GET', `${paths.activity}${queryOf({ cursor })}`, activitySchema),

    copySecret: async (secret) => clipboard.copy(secret),
    copyText: (text) => clipboard.copyText(text),
    saveFile: (file) => window.saveFile(file),
    offerCommands: async (offered) => enableCommands(offered),
    closeWindow: async () => window.close(),
  };
}

/** Answers every request with `session-ended` while nobody is signed in. */
const signedOutClient: CoreClient = {
  server: '',
  requestJson: async () => ({ ok: false, failure: { kind: 'session-ended' } }),
  requestEmpty: async () => ({ ok: false, failure: { kind: 'session-ended' } }),
  cookies: () => ({}),
  close: async () => undefined,
};

function refused(path: string, message: string): { ok: false; failure: Failure } {
  return {
    ok: false,
    failure: { kind: 'refused', code: 'invalid', detail: message, errors: [{ path, message }], retryAfterSeconds: null },
  };
}

function deletionPath(path: typeof paths.apiKey | typeof paths.user, { id, cancelQueuedCalls }: Deletion): string {
  return pathTo(path, { id }) + (cancelQueuedCalls ? '?cancelQueuedCalls=true' : '');
}

function queryOf(parameters: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== '') query.set(name, value);
  return query.size === 0 ? '' : `?${query}`;
}
