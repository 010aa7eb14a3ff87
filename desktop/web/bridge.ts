import { flowParameter, type SignInOptions, signInResultParameter, signInResults } from '#contract/console/sign-in.ts';
import {
  computeClockLead,
  coreRequest,
  enterCodeAt,
  exportPath,
  failed,
  findFailure,
  readAnswer,
  refused,
  requestFunctions,
  type Send,
  signInAt,
  withEtags,
  withTenancyHeader,
} from '../core-requests.ts';
import { copyExport, nameExport } from '../csv-export.ts';
import type { Bridge, Command, ExportRequest, RequestName, Result, StartupState } from '../ipc.ts';
import { readLink } from '../server-address.ts';

const timeoutMs = 15_000;
const retryMs = 5_000;

let clockLead: number | null = null;

/** Requests go to the core that the page comes from. The browser adds the session's cookie, which no script can read. */
const exchange = withEtags(async ({ method, path, body }, more) => {
  // The address is relative, because a proxy may serve the core under a path.
  const response = await fetch(new URL(path.slice(1), document.baseURI), {
    method,
    headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...more },
    body: body === undefined ? null : JSON.stringify(body),
    mode: 'same-origin',
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  clockLead = computeClockLead(response.headers.get('date') ?? undefined) ?? clockLead;
  return { status: response.status, header: (name) => response.headers.get(name) ?? undefined, text: await response.text() };
});

const inTenancy = withTenancyHeader(async (request, headers) => {
  try {
    return readAnswer(await exchange(request, headers), request.schema);
  } catch {
    // Browsers don't tell pages the reason.
    return unreachable();
  }
});
const send: Send = inTenancy.send;

function unreachable(): Result<never> {
  return failed({ kind: 'unreachable', detail: 'Check your network connection, and make sure that the server is running.' });
}

/** Hashes a text. Returns null over HTTP to another machine, because browsers offer `crypto.subtle` only in secure contexts. */
async function sha256(text: string): Promise<string | null> {
  if (!isSecureContext) return null;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Requests that change the session. Other tabs share it, so they must be notified. */
const changingSession: readonly RequestName[] = ['setUp', 'selectTenancy', 'changePassword', 'confirmSecondFactor', 'removeSecondFactor'];

function webBridge(): Bridge {
  /** All tabs share one cookie, so each must learn when another changes the session. */
  const tabs = new BroadcastChannel('callkey-session');
  const askBeforeLeaving = (event: Event) => event.preventDefault();
  let showsSecret = false;
  let isChangeWaiting = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  /** Names the app's sign-in that this page asks to confirm. */
  let flow = '';
  let exporting = new AbortController();
  let onRows: Parameters<Bridge['onExportProgress']>[0] = () => undefined;
  let onChange: Parameters<Bridge['onSessionChange']>[0] = () => undefined;

  const guard = {
    begin() {
      showsSecret = true;
      addEventListener('beforeunload', askBeforeLeaving);
    },
    show: () => undefined,
    async end() {
      showsSecret = false;
      removeEventListener('beforeunload', askBeforeLeaving);
      if (isChangeWaiting) await followOtherTab();
    },
  };

  /** Follows a change that another tab has made. This replaces the screen, so a change waits while a secret is visible. */
  async function followOtherTab(): Promise<void> {
    clearTimeout(retry);
    const answer = showsSecret ? null : await send(coreRequest('showSession', {}));
    // A secret may have become visible since the request.
    isChangeWaiting = showsSecret;
    if (!answer || isChangeWaiting) return;
    if (answer.ok || answer.failure.kind === 'session-ended') onChange(answer);
    else retry = setTimeout(followOtherTab, retryMs);
  }
  tabs.onmessage = () => void followOtherTab();

  async function tellOtherTabs<Value>(changing: Promise<Result<Value>>): Promise<Result<Value>> {
    const result = await changing;
    if (result.ok) tabs.postMessage(null);
    return result;
  }

  async function readStartupState(): Promise<StartupState> {
    const answer = await send(coreRequest('showSession', {}));
    const isSignedOut = !answer.ok && answer.failure.kind === 'session-ended';
    const parameters = takeParameters();
    const taken = signInResults.find((known) => known === parameters.get(signInResultParameter)) ?? null;
    flow = parameters.get(flowParameter) ?? flow;
    // Another tab may have signed in while this one was at the provider. Then it doesn't matter how this tab's sign-in ended.
    const signInResult = answer.ok && taken !== 'app' && taken !== 'done' ? null : taken;
    if (signInResult === 'done') tabs.postMessage(null);
    const remembered = { server: location.origin, email: '' };
    return { remembered, persistence: null, notice: null, appVersion: null, session: isSignedOut ? null : answer, signInResult };
  }

  const requests = requestFunctions({ send, guard, sha256 });
  return {
    ...requests,
    capabilities: { choosesServer: false, hasMenu: false, guardsSecrets: false, hidesSecrets: false, isPrivate: isSecureContext },

    getStartupState: readStartupState,
    awaitStorage: readStartupState,
    readClockLead: async () => clockLead,
    listServers: async () => [],
    selectServer: async () => undefined,
    async readLink(link) {
      const read = readLink(link);
      const own = new URL('.', document.baseURI).href.replace(/\/$/, '');
      if (read.ok && read.address === own) return { ok: true, value: { server: location.origin, address: read.screen } };
      return refused('link', 'This link leads to another server. Open it in a new tab.');
    },
    markServer: async () => undefined,
    forgetServer: async () => failed({ kind: 'session-ended' }),
    signIn: (input) => tellOtherTabs(signInAt(send, input)),
    enterCode: (code) => tellOtherTabs(enterCodeAt(send, code)),
    getSignInOptions: () => send(coreRequest('showSignIn', {})),
    async signInWithProvider({ staysOnPage }) {
      const options = await send(coreRequest('showSignIn', {}));
      if (!options.ok) return options;
      const url = signInUrl(options.value);
      if (staysOnPage) open(url, '_blank', 'noopener');
      else location.assign(url);
      return { ok: true, value: null };
    },
    readSignInLink: async () => null,
    openSignInLink: async () => undefined,
    cancelSignIn: async () => undefined,
    async signOutOfProvider() {
      const options = await send(coreRequest('showSignIn', {}));
      if (options.ok && options.value.oidc?.signOutUrl) location.assign(options.value.oidc.signOutUrl);
    },
    async confirmApp() {
      const answer = await send(coreRequest('handOver', { flow }));
      if (!answer.ok) return answer;
      location.assign(answer.value.url);
      return { ok: true, value: null };
    },
    signOut: () => tellOtherTabs(send(coreRequest('signOut', {}))),
    request(name, input) {
      const result = requests.request(name, input);
      return changingSession.includes(name) ? tellOtherTabs(result) : result;
    },

    setTenancy: async (shown) => inTenancy.setTenancy(shown),

    copySecret: (secret) => navigator.clipboard.writeText(secret),
    // Reading the clipboard would need a permission.
    holdsSecret: async () => true,
    copyText: (text) => navigator.clipboard.writeText(text),
    saveFile,
    saveSecret: async () => refused('file', 'A browser can’t limit who can read a file. Copy the secret instead.'),
    saveExport(request) {
      exporting.abort();
      exporting = new AbortController();
      return saveExport(request, exporting.signal, (rows) => onRows(rows));
    },
    cancelExport: async () => exporting.abort(),
    // A browser has its own menu.
    offerCommands: async () => undefined,
    closeWindow: async () => undefined,

    onCommand: listenForShortcuts,
    // A browser opens links itself.
    onLink: () => () => undefined,
    onExportProgress(listener) {
      onRows = listener;
      return () => {
        onRows = () => undefined;
      };
    },
    onSessionChange(listener) {
      onChange = listener;
      return () => {
        onChange = () => undefined;
      };
    },
  };
}

/** Returns what the address says about a sign-in, and removes it there, so that reloading the page doesn't repeat the message. */
function takeParameters(): URLSearchParams {
  const url = new URL(location.href);
  const taken = new URLSearchParams(url.search);
  for (const name of [signInResultParameter, flowParameter]) url.searchParams.delete(name);
  if (taken.has(signInResultParameter)) history.replaceState(history.state, '', url);
  return taken;
}

/**
 * Returns the address that starts the sign-in. If the provider redirects to another origin than the page's, returns the console's address
 * there instead, because the sign-in's cookie would be missing after the redirect.
 */
function signInUrl({ oidc }: SignInOptions): string {
  const start = new URL(oidc?.url ?? document.baseURI, document.baseURI);
  return start.origin === location.origin ? start.href : new URL('..', start).href;
}

/** Saves a file. The browser puts it in its downloads folder, or asks where. */
async function saveFile({ name, text }: { name: string; text: string }): ReturnType<Bridge['saveFile']> {
  download(name, new Blob([text], { type: 'text/csv' }));
  return { ok: true, value: true };
}

/** Collects a file in blobs, because browsers keep large ones on disk, then saves it. */
async function saveExport(request: ExportRequest, signal: AbortSignal, onRows: (rows: number) => void): ReturnType<Bridge['saveExport']> {
  const opened = await openFile(exportPath(request), signal);
  if (signal.aborted) return { ok: true, value: null };
  if (!opened.ok) return opened;
  let parts: BlobPart[] = [];
  const write = async (text: string) => {
    parts.push(text);
    if (parts.length >= partsPerBlob) parts = [new Blob(parts)];
  };
  const copied = await copyExport({ body: opened.value, write, onRows, signal });
  if (copied.ok && copied.value !== null) download(request.file, new Blob(parts, { type: 'text/csv' }));
  return copied;
}

const partsPerBlob = 100;

async function openFile(path: string, signal: AbortSignal): Promise<Result<AsyncIterable<Uint8Array>>> {
  const options = { headers: inTenancy.headers(), mode: 'same-origin', cache: 'no-store', redirect: 'error', signal } as const;
  const response = await fetch(new URL(path.slice(1), document.baseURI), options).catch(() => null);
  if (!response?.body) return unreachable();
  const { status, headers, body } = response;
  const text = status === 200 ? '' : await response.text();
  const failure = findFailure({ status, header: (name) => headers.get(name) ?? undefined, text });
  return failure ?? { ok: true, value: readParts(body) };
}

/** Not every browser can iterate over a stream. */
async function* readParts(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function download(name: string, file: Blob): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = nameExport(name, location.host);
  link.click();
  URL.revokeObjectURL(url);
}

/** The menu's shortcuts that browsers don't use themselves. */
const shortcuts: Readonly<Record<string, Command>> = { k: 'palette' };

function listenForShortcuts(listener: (command: Command) => void): () => void {
  const onKeyDown = (event: KeyboardEvent) => {
    const command = event.ctrlKey || event.metaKey ? shortcuts[event.key] : undefined;
    if (!command) return;
    event.preventDefault();
    listener(command);
  };
  addEventListener('keydown', onKeyDown);
  return () => removeEventListener('keydown', onKeyDown);
}

// The screens use `window.callkey` when they load, so this module must be loaded first.
Object.defineProperty(window, 'callkey', { value: Object.freeze(webBridge()) });
