import { computed, effect, signal } from '@preact/signals';
import type { SessionView } from '#contract/console/session.ts';
import type { SignInResult } from '#contract/console/sign-in.ts';
import type { Failure, ProviderSignIn, RequestInput, Result, SignIn, SignInAnswer, StartupState } from '../../ipc.ts';
import { readTypedAddress } from '../../server-address.ts';
import { announce, dismissAnnouncement, warn } from './announcement.ts';
import { isTransient } from './failure-text.ts';
import { openDialog, resetNavigation } from './navigation.ts';
import { forgetViews } from './remembered.ts';

/** Null until the main process has responded. */
export const startupState = signal<StartupState | null>(null);

/** The signed-in session, or null. It's kept while the user signs in again, so that no typed text is lost. */
export const session = signal<SessionView | null>(null);

/** Why the console can't use the core at all; null while it can. */
export const connectionError = signal<Extract<Failure, { kind: 'incompatible' | 'unreachable' }> | null>(null);

/** Whether the core has ended the session. A dialog over the current screen asks the user to sign in again. */
export const sessionHasEnded = signal(false);

/** Whether the core didn't respond to the last sign-out. */
export const signOutFailed = signal(false);

/** The sign-in form's server and email address. They outlive a session, so that the user types them only once. */
export const server = signal('');
export const email = signal('');

/** Increased to make every visible resource reload: after signing in, and on refresh. */
export const refreshKey = signal(0);

/** How the sign-in with the provider ended, if the browser has just come back from it. */
export const signInResult = signal<SignInResult | null>(null);

/** Whether the user has just signed out of a session that began with the provider, where they may still be signed in. */
export const leftProvider = signal(false);

export type TenancyChoice = RequestInput<'selectTenancy'>;

/** The tenancy in the address that the page was opened with. */
export const addressTenancy = signal<TenancyChoice | null>(null);

/** Identifies the server, the viewer and the tenancy. A change replaces the screen, so that no data of one tenancy is shown in another. */
export const tenancyKey = computed(() => {
  const tenancy = session.value?.tenancy;
  return `${serverPrefix()}${session.value?.viewer.id ?? ''}/${tenancy ? `${tenancy.kind}:${tenancy.id}` : ''}`;
});

function serverPrefix(): string {
  return `${server.value} `;
}

/** Makes requests act in the tenancy that the page shows. The page calls it once. */
export function followTenancy(): void {
  effect(() => {
    const tenancy = session.value?.tenancy;
    void window.callkey.setTenancy(tenancy ? { kind: tenancy.kind, id: tenancy.id } : { kind: null });
  });
}

/** Counts the sessions and servers that the user has left. A late response from one of them doesn't apply to the next. */
let departures = 0;

/** Updates the session state if a failure concerns the whole session. If the user left the session in the meantime, returns that it has ended. */
export async function handleSessionFailure<Value>(answer: Promise<Result<Value>>): Promise<Result<Value>> {
  const departuresBefore = departures;
  const result = await answer.catch((): Result<never> => ({ ok: false, failure: consoleFailed }));
  if (departuresBefore !== departures) return { ok: false, failure: { kind: 'session-ended' } };
  if (result.ok) return result;
  if (result.failure.kind === 'session-ended' && session.peek()) sessionHasEnded.value = true;
  if (result.failure.kind === 'incompatible') connectionError.value = result.failure;
  return result;
}

/** Shown if the main process threw an error. Such an error isn't about a field, so `errors` is empty. */
const consoleFailed: Failure = {
  kind: 'refused',
  code: 'internal',
  detail: 'Something went wrong in the console. Try again. If that doesn’t help, restart it.',
  errors: [],
  retryAfterSeconds: null,
};

/** Used if the main process can't read its settings. The user then signs in as at the first start. */
const emptyStartupState: StartupState = {
  remembered: { server: '', email: '' },
  persistence: { possible: false, reason: 'The console couldn’t read its settings. You can sign in, but you won’t stay signed in.' },
  notice: null,
  appVersion: null,
  session: null,
  signInResult: null,
};

/** Counts attempts. Only the response to the latest attempt is used, and none if the user has continued to the sign-in form. */
let startupAttempt = 0;

/** Loads the remembered settings and the stored session. */
export async function loadStartupState(): Promise<void> {
  startupAttempt += 1;
  const attempt = startupAttempt;
  const startup = await window.callkey.getStartupState().catch(() => emptyStartupState);
  if (attempt !== startupAttempt) return;
  await applyStartupState(startup, startupState.peek() === null);
  if (startup.persistence?.possible !== false || !startup.persistence.isWaiting) return;
  const late = await window.callkey.awaitStorage().catch(() => emptyStartupState);
  // The user may have continued without the stored session.
  if (attempt === startupAttempt && !session.peek()) await applyStartupState(late, late.session !== null);
  else startupState.value = late;
}

async function applyStartupState(startup: StartupState, replacesForm: boolean): Promise<void> {
  if (replacesForm) {
    server.value = startup.remembered.server;
    email.value = startup.remembered.email;
  }
  connectionError.value = null;
  signInResult.value = startup.signInResult;
  if (startup.session?.ok) await startSession(startup.session.value);
  else if (startup.session && startup.session.failure.kind !== 'session-ended') setConnectionError(startup.session.failure);
  startupState.value = startup;
}

/** Signs in. If the value isn't a session, a code is required: see {@link enterCode}. */
export async function signIn(input: SignIn): Promise<Result<SignInAnswer>> {
  const result = await handleSessionFailure(window.callkey.signIn(input));
  if (!result.ok) return result;
  connectionError.value = null;
  const read = readTypedAddress(input.server);
  if (read.ok) server.value = read.address;
  if ('viewer' in result.value) await startSession(result.value);
  return result;
}

/** Finishes a sign-in with a code. */
export async function enterCode(code: string): Promise<Result<SessionView>> {
  const result = await handleSessionFailure(window.callkey.enterCode(code));
  if (result.ok) await startSession(result.value);
  return result;
}

/** Signs in with the provider. A browser leaves the page for this, unless the page has to stay open. */
export async function signInWithProvider(input: ProviderSignIn): Promise<Result<SessionView | null>> {
  signInResult.value = null;
  if (input.staysOnPage) return continueSession(window.callkey.signInWithProvider(input));
  const result = await handleSessionFailure(window.callkey.signInWithProvider(input));
  // The user has cancelled it.
  if (!result.ok && result.failure.kind === 'session-ended') return { ok: true, value: null };
  if (!result.ok || !result.value) return result;
  connectionError.value = null;
  const read = readTypedAddress(input.server);
  if (read.ok) server.value = read.address;
  await startSession(result.value);
  return result;
}

/** Selects a tenancy for staff, unless the session has it already. */
export async function selectTenancyIn(view: SessionView, tenancy: TenancyChoice | null): Promise<Result<SessionView>> {
  const isSelected = tenancy?.kind == null || (tenancy.kind === view.tenancy?.kind && tenancy.id === view.tenancy.id);
  if (isSelected || view.viewer.userType !== 'staff' || view.passwordChangeDue || view.secondFactorDue) return { ok: true, value: view };
  return handleSessionFailure(window.callkey.request('selectTenancy', tenancy));
}

/** Starts a session in the tenancy in the page's address. If that doesn't exist, the session's own selection is used. */
async function startSession(view: SessionView): Promise<void> {
  const selected = await selectTenancyIn(view, addressTenancy.peek());
  if (!selected.ok && (selected.failure.kind !== 'refused' || isTransient(selected.failure))) return setConnectionError(selected.failure);
  addressTenancy.value = null;
  setSession(selected.ok ? selected.value : view);
  if (!selected.ok) announce('The account or partner in the address doesn’t exist. Showing the one that you selected last.');
}

/** Switches to another server that the user has signed in to. The session with this one continues. */
export async function switchServer(address: string): Promise<void> {
  leaveServer();
  startupState.value = null;
  await window.callkey.selectServer(address).catch(() => undefined);
  await loadStartupState();
}

/** Shows the sign-in form for another server. The session with this one continues. */
export function addServer(address = ''): void {
  leaveServer();
  server.value = address;
  email.value = '';
}

/** Signs the same user in again after the session has ended, and selects the same tenancy. */
export function signInAgain(password: string): Promise<Result<SignInAnswer>> {
  const input = { server: server.peek(), email: session.peek()?.viewer.email ?? '', password, keepSignedIn: null };
  return continueSession(window.callkey.signIn(input));
}

/** Finishes signing in again. */
export function enterCodeAgain(code: string): Promise<Result<SignInAnswer>> {
  return continueSession(window.callkey.enterCode(code));
}

async function continueSession<Answer extends SignInAnswer | null>(signingIn: Promise<Result<Answer>>): Promise<Result<Answer>> {
  const before = session.peek();
  const result = await handleSessionFailure(signingIn);
  const answer: SignInAnswer | null = result.ok ? result.value : null;
  if (!answer || !('viewer' in answer)) return result;
  if (!before?.tenancy || before.viewer.id !== answer.viewer.id) setSession(answer);
  else {
    const { kind, id } = before.tenancy;
    const selected = await handleSessionFailure(window.callkey.request('selectTenancy', { kind, id }));
    // In a different tenancy, the screen would be replaced, and the user's input would be lost.
    if (!selected.ok) return selected;
    setSession(selected.value);
  }
  return result;
}

/** Called when the main process has signed out of all servers, because no one was using the computer. */
export function locked(): void {
  resetSession();
  // It stays until the user comes back.
  warn('You were signed out because you weren’t using this computer.');
}

export async function signOut(): Promise<void> {
  const usedProvider = session.peek()?.signedInWith !== undefined;
  resetSession();
  leftProvider.value = usedProvider;
  const isOver = await hasEnded(window.callkey.signOut());
  signOutFailed.value = !isOver && !session.peek();
}

/** @returns false if the session on that server continues, because it didn't respond */
export function forgetServer(address: string): Promise<boolean> {
  return hasEnded(window.callkey.forgetServer(address));
}

async function hasEnded(ending: Promise<Result<null>>): Promise<boolean> {
  const result = await ending.catch(() => null);
  return result !== null && (result.ok || result.failure.kind === 'session-ended');
}

/** Called when another tab has signed in or out, or selected another tenancy, because all tabs of a browser share one session. */
export function sessionChangedElsewhere(result: Result<SessionView>): void {
  if (!result.ok) {
    if (result.failure.kind === 'session-ended' && session.peek()) sessionHasEnded.value = true;
    return;
  }
  const before = tenancyKey.peek();
  setSession(result.value);
  if (tenancyKey.peek() === before) return;
  openDialog.value = null;
  announce('The session changed in another tab.');
}

/** Returns to the sign-in form. The next user starts on the home screen. */
export function resetSession(): void {
  forgetViews(serverPrefix());
  leaveServer();
}

function leaveServer(): void {
  departures += 1;
  void window.callkey.cancelSignIn();
  startupAttempt += 1;
  resetNavigation();
  dismissAnnouncement();
  signOutFailed.value = false;
  leftProvider.value = false;
  signInResult.value = null;
  session.value = null;
  sessionHasEnded.value = false;
  connectionError.value = null;
}

/**
 * Called when the user has turned their second factor on or off. Reads the whole session again, because if the operator requires a second
 * factor, other fields change, too.
 */
export async function secondFactorChanged(): Promise<void> {
  const result = await handleSessionFailure(window.callkey.request('showSession', {}));
  if (result.ok) session.value = result.value;
}

/** Called when the user has replaced the one-time password. */
export function passwordChanged(): void {
  const now = session.peek();
  if (!now) return;
  const { passwordChangeDue: _, ...rest } = now;
  session.value = rest;
}

export function setSession(view: SessionView): void {
  session.value = view;
  leftProvider.value = false;
  signOutFailed.value = false;
  sessionHasEnded.value = false;
  refreshKey.value += 1;
}

function setConnectionError(failure: Failure): void {
  if (failure.kind === 'incompatible' || failure.kind === 'unreachable') connectionError.value = failure;
  else if (failure.kind === 'refused') connectionError.value = { kind: 'unreachable', detail: failure.detail };
}
