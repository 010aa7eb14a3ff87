import { computed, effect, signal } from '@preact/signals';
import type { SessionView } from '#contract/console/session.ts';
import type { SignInResult } from '#contract/console/sign-in.ts';
import {
  type Failure,
  type ProviderSignIn,
  type RequestInput,
  type Result,
  refusal,
  type SignIn,
  type SignInAnswer,
  type StartupState,
} from '../../ipc.ts';
import { readTypedAddress } from '../../server-address.ts';
import { announce, dismissAnnouncement, warn } from './announcement.ts';
import { isTransient } from './failure-text.ts';
import { openDialog, resetNavigation } from './navigation.ts';
import { forgetAll } from './remembered.ts';
import { dropUnshown } from './secret-guard.ts';

/** Why the session, or the sign-in, can't continue. */
type Trouble = Extract<Failure, { kind: 'incompatible' | 'unreachable' | 'session-ended' }>;

/** How the user came to the sign-in form. @property hasFailed whether the core didn't respond to signing out */
type Arrival = { by: 'sign-out'; usedProvider: boolean; hasFailed: boolean } | { by: 'provider'; result: SignInResult };

type State = {
  /** What the main process said at the start; null until it has responded. */
  startup: StartupState | null;
  /** It's kept while the user signs in again, so that no typed text is lost. A dialog over the current screen then asks for the password. */
  session: SessionView | null;
  trouble: Trouble | null;
  arrival: Arrival | null;
};

/** Before and after each session. */
const nothing = { session: null, trouble: null, arrival: null };
const state = signal<State>({ startup: null, ...nothing });

function change(changes: Partial<State>): void {
  state.value = { ...state.peek(), ...changes };
}

export const startupState = computed(() => state.value.startup);
export const session = computed(() => state.value.session);
export const trouble = computed(() => state.value.trouble);
export const arrival = computed(() => state.value.arrival);

/** The sign-in form's server and email address. They outlive a session, so that the user types them only once. */
export const server = signal('');
export const email = signal('');

/** Increased to make every visible resource reload: after signing in, and on refresh. */
export const refreshKey = signal(0);

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
  if (departuresBefore !== departures) {
    if (result.ok) dropUnshown(result.value);
    return { ok: false, failure: { kind: 'session-ended' } };
  }
  if (result.ok) return result;
  const { kind } = result.failure;
  if (kind === 'incompatible' || (kind === 'session-ended' && session.peek())) change({ trouble: result.failure });
  return result;
}

/** Shown if the main process threw an error. */
const consoleFailed = refusal('internal', 'Something went wrong in the console. Try again. If that doesn’t help, restart it.');

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
  else change({ startup: late });
}

async function applyStartupState(startup: StartupState, replacesForm: boolean): Promise<void> {
  if (replacesForm) {
    server.value = startup.remembered.server;
    email.value = startup.remembered.email;
  }
  const { signInResult } = startup;
  change({ trouble: null, arrival: signInResult && { by: 'provider', result: signInResult } });
  if (startup.session?.ok) await startSession(startup.session.value);
  else if (startup.session && startup.session.failure.kind !== 'session-ended') showTrouble(startup.session.failure);
  change({ startup });
}

/** Signs in. If the value isn't a session, a code is required: see {@link enterCode}. */
export async function signIn(input: SignIn): Promise<Result<SignInAnswer>> {
  const result = await handleSessionFailure(window.callkey.signIn(input));
  if (!result.ok) return result;
  change({ trouble: null });
  const read = readTypedAddress(input.server);
  if (read.ok) server.value = read.address;
  if ('viewer' in result.value) await startSession(result.value);
  return result;
}

export async function enterCode(code: string): Promise<Result<SessionView>> {
  const result = await handleSessionFailure(window.callkey.enterCode(code));
  if (result.ok) await startSession(result.value);
  return result;
}

/** Signs in with the provider. A browser leaves the page for this, unless the page has to stay open. */
export async function signInWithProvider(input: ProviderSignIn): Promise<Result<SessionView | null>> {
  change({ arrival: null });
  if (input.staysOnPage) return continueSession(window.callkey.signInWithProvider(input));
  const result = await handleSessionFailure(window.callkey.signInWithProvider(input));
  // The user has cancelled it.
  if (!result.ok && result.failure.kind === 'session-ended') return { ok: true, value: null };
  if (!result.ok || !result.value) return result;
  change({ trouble: null });
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
  if (!selected.ok && (selected.failure.kind !== 'refused' || isTransient(selected.failure))) return showTrouble(selected.failure);
  addressTenancy.value = null;
  setSession(selected.ok ? selected.value : view);
  if (!selected.ok) announce('The account or partner in the address doesn’t exist. Showing the one that you selected last.');
}

/** Switches to another server that the user has signed in to. The session with this one continues. */
export async function switchServer(address: string): Promise<void> {
  leave(false);
  change({ startup: null });
  await window.callkey.selectServer(address).catch(() => undefined);
  await loadStartupState();
}

/** Shows the sign-in form for another server. The session with this one continues. */
export function addServer(address = ''): void {
  leave(false);
  server.value = address;
  email.value = '';
}

/** Signs the same user in again after the session has ended, and selects the same tenancy. */
export function signInAgain(password: string): Promise<Result<SignInAnswer>> {
  const input = { server: server.peek(), email: session.peek()?.viewer.email ?? '', password, keepSignedIn: null };
  return continueSession(window.callkey.signIn(input));
}

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
  leave();
  // It stays until the user comes back.
  warn('You were signed out because you weren’t using this computer.');
}

export async function signOut(): Promise<void> {
  const arrival = { by: 'sign-out', usedProvider: session.peek()?.signedInWith !== undefined } as const;
  leave();
  change({ arrival: { ...arrival, hasFailed: false } });
  const isOver = await hasEnded(window.callkey.signOut());
  if (!isOver && !session.peek()) change({ arrival: { ...arrival, hasFailed: true } });
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
    if (result.failure.kind === 'session-ended' && session.peek()) change({ trouble: result.failure });
    return;
  }
  const before = tenancyKey.peek();
  setSession(result.value);
  if (tenancyKey.peek() === before) return;
  openDialog.value = null;
  announce('The session changed in another tab.');
}

/** Leaves the session or the sign-in. The next user starts on the home screen. @param forgets whether to forget what the screens showed */
export function leave(forgets = true): void {
  if (forgets) forgetAll(serverPrefix());
  departures += 1;
  void window.callkey.cancelSignIn();
  startupAttempt += 1;
  resetNavigation();
  dismissAnnouncement();
  change(nothing);
}

/** Called when the user has turned their second factor on or off. If the operator requires one, other fields change, too. */
export async function secondFactorChanged(): Promise<void> {
  const result = await handleSessionFailure(window.callkey.request('showSession', {}));
  if (result.ok) change({ session: result.value });
}

/** Called when the user has replaced the one-time password. */
export function passwordChanged(): void {
  const now = session.peek();
  if (!now) return;
  const { passwordChangeDue: _, ...rest } = now;
  change({ session: rest });
}

export function setSession(view: SessionView): void {
  const now = state.peek();
  change({ session: view, trouble: null, arrival: now.arrival?.by === 'sign-out' ? null : now.arrival });
  refreshKey.value += 1;
}

/** Tries again after trouble during a session. */
export function tryAgain(): void {
  change({ trouble: null });
  refreshKey.value += 1;
}

/** Continues to the session without handing the sign-in over to the app. */
export function dismissArrival(): void {
  change({ arrival: null });
}

function showTrouble(failure: Failure): void {
  if (failure.kind === 'refused') change({ trouble: { kind: 'unreachable', detail: failure.detail } });
  else if (failure.kind !== 'session-ended') change({ trouble: failure });
}
