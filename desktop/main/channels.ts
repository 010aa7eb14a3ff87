import { hash } from 'node:crypto';
import { readServerAddress } from '#contract/server-address.ts';
import { failed } from '../core-answers.ts';
import { coreChannels, refused, requests, type Send, signInAt } from '../core-channels.ts';
import type { Channels, Command } from '../ipc.ts';
import type { SecretClipboard } from './clipboard.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import type { SessionStore } from './session-store.ts';
import type { SettingsFile } from './settings.ts';
import type { ConsoleWindow } from './window.ts';

type ChannelDeps = {
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

  /** Answers with `session-ended` while nobody is signed in. */
  const send: Send = async (request) => (core ? core.send(request) : failed({ kind: 'session-ended' }));

  /** Stores the session, or deletes the stored one. A failure must not stop the user from signing in. */
  async function storeSession(client: CoreClient): Promise<void> {
    const done = staysSignedIn ? sessionStore.write({ server: client.server, cookies: client.cookies() }) : sessionStore.delete();
    await done.catch(() => undefined);
  }

  const guard = {
    begin: () => window.setSecretVisible(true),
    show: (secret: string) => clipboard.trackVisible(secret),
    async end() {
      window.setSecretVisible(false);
      await clipboard.clearSelection();
    },
  };

  return {
    ...coreChannels({ send, guard, sha256: async (text) => hash('sha256', text) }),

    async getStartupState() {
      const { server, email } = settings.current;
      const remembered = { server, email };
      const [persistence, session] = await Promise.all([sessionStore.persistence(), sessionStore.read()]);
      if (!session) return { remembered, persistence, session: null };
      staysSignedIn = true;
      // The page retries while the core does not answer: keep one client.
      core ??= coreClient(session.server, session.cookies);
      const answer = await core.send(requests.getSession());
      if (!answer.ok && answer.failure.kind === 'session-ended') await sessionStore.delete().catch(() => undefined);
      return { remembered, persistence, session: answer };
    },

    async signIn(input) {
      const { server, email, keepSignedIn } = input;
      const read = readServerAddress(server.includes('://') ? server : `https://${server}`);
      if (!read.ok) return refused('server', read.problem);
      const client = coreClient(read.address);
      const answer = await signInAt(client.send, input);
      if (!answer.ok) {
        await client.close();
        return answer;
      }
      await core?.close();
      core = client;
      staysSignedIn = keepSignedIn ?? staysSignedIn;
      await Promise.all([storeSession(client), settings.change({ server: read.address, email: email.trim() })]);
      return answer;
    },

    async signOut() {
      const client = core;
      // Does not wait for the core: somebody may sign in again meanwhile.
      core = null;
      staysSignedIn = false;
      await sessionStore.delete().catch(() => undefined);
      if (!client) return failed({ kind: 'session-ended' });
      const answer = await client.send(requests.signOut());
      await client.close();
      return answer;
    },

    copySecret: async (secret) => clipboard.copy(secret),
    copyText: (text) => clipboard.copyText(text),
    saveFile: (file) => window.saveFile(file),
    offerCommands: async (offered) => enableCommands(offered.commands),
    closeWindow: async () => window.close(),
  };
}
