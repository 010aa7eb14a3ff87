import { hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { shell } from 'electron';
import type { SignInOptions } from '#contract/console/sign-in.ts';
import {
  coreRequest,
  enterCodeAt,
  explainIdentity,
  exportPath,
  failed,
  refused,
  requestFunctions,
  type SecretSubject,
  signInAt,
} from '../core-requests.ts';
import { copyExport, nameExport } from '../csv-export.ts';
import type { BridgeFunctions, Command, Result, StartupState } from '../ipc.ts';
import { readLink, readTypedAddress } from '../server-address.ts';
import { cancelledSignIn, signInThroughBrowser } from './browser-sign-in.ts';
import type { SecretClipboard } from './clipboard.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import { saveChosen } from './replace-file.ts';
import { endAtServer, type ServerSessions } from './server-sessions.ts';
import type { SessionStore } from './session-store.ts';
import type { ManagedSettings, SettingsFile } from './settings.ts';
import type { ConsoleWindow } from './window.ts';

export type BridgeDeps = {
  settings: SettingsFile;
  servers: ServerSessions;
  managed: ManagedSettings;
  appVersion: string;
  sessionStore: SessionStore;
  clipboard: SecretClipboard;
  window: Pick<ConsoleWindow, 'setSecretVisible' | 'confirmServer' | 'chooseFile' | 'reportProgress' | 'close' | 'focus'>;
  enableCommands: (offered: readonly Command[]) => void;
};

/** @property signal aborts when the sign-in is cancelled */
type StartingSession = { client: CoreClient; email: string; keepSignedIn: boolean | null; signal: AbortSignal };

/** How long the page shows nothing while a keyring may ask for its password, in ms. */
const storagePatienceMs = 2_000;

/** Implements the bridge. Holds the sessions with the cores, so that the renderer never sees their cookies. */
export function createBridge(deps: BridgeDeps): BridgeFunctions {
  const { settings, servers, managed, appVersion, sessionStore, clipboard, window, enableCommands } = deps;
  let exporting = new AbortController();

  /** The servers that the user has agreed to connect to. */
  const confirmed = new Set(managed.server === undefined ? [] : [managed.server]);

  /** The question that the user hasn't answered yet. Only one is asked at a time, because any web page can open links one after another. */
  let question: { address: string; answer: Promise<boolean> } | null = null;

  async function askAbout(address: string): Promise<boolean> {
    const isAgreed = await window.confirmServer(new URL(address).host).finally(() => {
      question = null;
    });
    if (isAgreed) confirmed.add(address);
    return isAgreed;
  }

  /** Asks the user about a server, unless they know it. @param field that the refusal is about */
  async function confirmServer(address: string, field: string): Promise<Result<string>> {
    if (confirmed.has(address) || servers.list().some((server) => server.address === address)) return { ok: true, value: address };
    question ??= { address, answer: askAbout(address) };
    if (question.address !== address) return refused(field, 'Answer the open question about another server, then try again.');
    return (await question.answer) ? { ok: true, value: address } : refused(field, 'You chose not to connect to this server.');
  }

  /** Reads a server's address. While the user is signed in, asks them about a new server, because the page could send data there. */
  async function readServer(typed: string): Promise<Result<string>> {
    const read = readTypedAddress(typed);
    if (!read.ok) return refused('server', read.problem);
    const isSignedIn = servers.list().some((server) => server.isSignedIn);
    return isSignedIn ? confirmServer(read.address, 'server') : { ok: true, value: read.address };
  }

  /** Checks that a core is running at an address before anything secret is sent there. The request has no cookies. */
  async function identify(server: string): Promise<Result<{ address: string; options: SignInOptions }>> {
    const read = await readServer(server);
    if (!read.ok) return read;
    const address = read.value;
    const client = coreClient(address);
    const options = await client.send(coreRequest('showSignIn', {}));
    await client.close();
    return options.ok ? { ok: true, value: { address, options: options.value } } : failed(explainIdentity(options.failure, address));
  }

  async function readStartupState(): Promise<StartupState> {
    const { persistence, notice } = sessionStore;
    const { address, email } = servers.current;
    const state = {
      remembered: { server: address === '' ? (managed.server ?? '') : address, email },
      persistence,
      notice,
      appVersion,
      session: null,
      signInResult: null,
    };
    if (!servers.client) return state;
    const session = await servers.send(coreRequest('showSession', {}));
    if (!session.ok && session.failure.kind === 'session-ended') await (await servers.end(address))?.close();
    return { ...state, session };
  }

  /** The sign-in in progress. Only one runs at a time. */
  let signingIn = new AbortController();
  /** The client of a sign-in that still needs a code. */
  let waitingForCode: StartingSession | null = null;

  /** The link of the provider's sign-in in progress; null if the sign-in ended before it had one. */
  let signInLink = Promise.withResolvers<string | null>();

  function cancelSignIn(): void {
    signingIn.abort();
    void waitingForCode?.client.close();
    waitingForCode = null;
  }

  function startSigningIn(): AbortSignal {
    cancelSignIn();
    signInLink.resolve(null);
    signingIn = new AbortController();
    signInLink = Promise.withResolvers();
    return signingIn.signal;
  }

  /** Adds the new session. Ends it if the user has left the sign-in: otherwise, its server would become the current one. */
  async function finishSignIn<Answer>(starting: StartingSession, answer: Result<Answer>): Promise<Result<Answer>> {
    const { client, email, keepSignedIn, signal } = starting;
    if (signal.aborted) {
      await endAtServer(client);
      return cancelledSignIn;
    }
    await servers.add(client, email, keepSignedIn);
    return answer;
  }

  const chooseFile = (name: string) => window.chooseFile(nameExport(name, new URL(servers.current.address).host));

  async function saveText(choosing: Promise<string | null>, text: string, mode?: number): Promise<Result<true | null>> {
    const path = await choosing;
    if (path === null) return { ok: true, value: null };
    const write = async (file: FileHandle) => {
      if (mode !== undefined) await file.chmod(mode);
      await file.writeFile(text);
      return true as const;
    };
    return saveChosen(path, write, mode);
  }

  const guard = {
    begin: () => window.setSecretVisible(true),
    show(secret: string, subject: SecretSubject | null) {
      clipboard.trackVisible(secret);
      if (subject) void settings.change({ unsaved: { server: servers.current.address, ...subject } });
    },
    async end() {
      window.setSecretVisible(false);
      if (settings.current.unsaved) void settings.change({ unsaved: null });
      await clipboard.clearSelection();
    },
  };

  return {
    ...requestFunctions({ send: servers.send, guard, sha256: async (text) => hash('sha256', text) }),

    async getStartupState() {
      // After a crash, the reopened page doesn't know about the sign-in in progress.
      cancelSignIn();
      await Promise.race([servers.restored, pause(storagePatienceMs, undefined, { ref: false })]);
      return readStartupState();
    },
    async awaitStorage() {
      await servers.restored;
      return readStartupState();
    },

    listServers: async () => servers.list(),
    selectServer: (address) => servers.select(address),
    async readLink(link) {
      const read = readLink(link);
      if (!read.ok) return refused('link', read.problem);
      const agreed = await confirmServer(read.address, 'link');
      return agreed.ok ? { ok: true, value: { server: agreed.value, address: read.screen } } : agreed;
    },
    markServer: (marked) => servers.mark(marked),
    forgetServer: async (address) => endAtServer(await servers.forget(address)),

    async signIn(input) {
      const { server, email, keepSignedIn } = input;
      const signal = startSigningIn();
      const identified = await identify(server);
      if (!identified.ok) return identified;
      const { address } = identified.value;
      const client = coreClient(address, servers.deviceAt(address));
      // The user may cancel while the server is being identified, or before the password is sent again to a busy one.
      const answer = await signInAt(async (request) => (signal.aborted ? cancelledSignIn : client.send(request)), input);
      if (!answer.ok) {
        await client.close();
        return signal.aborted ? cancelledSignIn : answer;
      }
      const starting = { client, email: email.trim(), keepSignedIn, signal };
      if ('viewer' in answer.value || signal.aborted) return finishSignIn(starting, answer);
      waitingForCode = starting;
      return answer;
    },
    async enterCode(code) {
      const starting = waitingForCode;
      if (!starting) return refused('code', 'This sign-in was cancelled. Go back and start again.');
      // A cancellation ends it only after the response, which may be a session.
      waitingForCode = null;
      const answer = await enterCodeAt(starting.client.send, code);
      if (answer.ok || starting.signal.aborted) return finishSignIn(starting, answer);
      waitingForCode = starting;
      return answer;
    },

    readClockLead: async () => servers.client?.clockLead() ?? null,

    async getSignInOptions(server) {
      const identified = await identify(server);
      return identified.ok ? { ok: true, value: identified.value.options } : identified;
    },
    async signInWithProvider({ server, keepSignedIn }) {
      const signal = startSigningIn();
      const identified = await identify(server);
      if (!identified.ok) return identified;
      const { address, options } = identified.value;
      if (!options.oidc) return refused('server', 'This server doesn’t have a sign-in provider. Use your password.');
      const client = coreClient(address, servers.deviceAt(address));
      const answer = await signInThroughBrowser(client.send, options.oidc.url, signal, signInLink.resolve);
      if (!answer.ok) {
        await client.close();
        return answer;
      }
      const finished = await finishSignIn({ client, email: answer.value.viewer.email, keepSignedIn, signal }, answer);
      if (finished.ok) window.focus();
      return finished;
    },
    readSignInLink: () => signInLink.promise,
    async openSignInLink() {
      const link = await signInLink.promise;
      if (link !== null && !signingIn.signal.aborted) await shell.openExternal(link).catch(() => undefined);
    },
    cancelSignIn: async () => cancelSignIn(),
    async signOutOfProvider(server) {
      const identified = await identify(server);
      const url = identified.ok ? identified.value.options.oidc?.signOutUrl : null;
      if (url) await shell.openExternal(url).catch(() => undefined);
    },
    confirmApp: async () => failed({ kind: 'session-ended' }),

    signOut: async () => endAtServer(await servers.end(servers.current.address)),

    setTenancy: async (shown) => servers.client?.setTenancy(shown),

    copySecret: async (secret) => clipboard.copy(secret),
    holdsSecret: () => clipboard.holdsSecret(),
    copyText: (text) => clipboard.copyText(text),
    saveFile: ({ name, text }) => saveText(chooseFile(name), text),
    saveSecret: ({ name, text }) => saveText(window.chooseFile(name, []), text, 0o600),
    async saveExport(request) {
      exporting.abort();
      exporting = new AbortController();
      const { signal } = exporting;
      const { client } = servers;
      const filePath = client && (await chooseFile(request.file));
      if (!client) return failed({ kind: 'session-ended' });
      if (filePath === null || signal.aborted) return { ok: true, value: null };
      const opened = await client.openFile(exportPath(request), signal);
      if (signal.aborted) return { ok: true, value: null };
      if (!opened.ok) return opened;
      const onRows = (rows: number) => window.reportProgress(rows);
      let copied: Result<number | null> = { ok: true, value: null };
      const saved = await saveChosen(filePath, async (file) => {
        copied = await copyExport({ body: opened.value, write: (text) => file.appendFile(text), onRows, signal });
        return copied.ok ? copied.value : null;
      });
      return saved.ok ? copied : saved;
    },
    cancelExport: async () => exporting.abort(),
    offerCommands: async (offered) => enableCommands(offered.commands),
    closeWindow: async () => window.close(),
  };
}
