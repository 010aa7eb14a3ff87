import { computed, signal } from '@preact/signals';
import type { SessionView } from '#contract/console.ts';
import type { Beginning, Failure, Result, SignIn } from '../../ipc.ts';
import { announcement } from './announcement.ts';
import { opened, screen } from './route.ts';

/** What the console knew when it started; null until then. */
export const beginning = signal<Beginning | null>(null);

/** The signed-in session; null where nobody is signed in. It stays while it is renewed, so that nothing typed is lost. */
export const session = signal<SessionView | null>(null);

/** Why the core cannot be worked with at all, as long as that is so. */
export const obstacle = signal<Extract<Failure, { kind: 'incompatible' | 'unreachable' }> | null>(null);

/** The session has ended behind our back: its user is asked to sign in again, over whatever is on the screen. */
export const hasEnded = signal(false);

/** Where the session is, or is to be, and as whom: kept for as long as the window is open, so that nobody types it twice. */
export const server = signal('');
export const email = signal('');

/** Goes up when a session begins or is renewed: what a screen shows is loaded anew. */
export const sessionTurn = signal(0);

/** What everything on a screen follows: another tenancy, another set of everything. */
export const tenancyKey = computed(() => {
  const tenancy = session.value?.tenancy;
  return `${session.value?.viewer.id ?? ''}/${tenancy ? `${tenancy.kind}:${tenancy.id}` : ''}`;
});

/** Notes what a failure means for the session as a whole, and hands the answer on. */
export async function ask<Value>(answer: Promise<Result<Value>>): Promise<Result<Value>> {
  const result = await answer.catch((): Result<never> => ({ ok: false, failure: consoleFailed }));
  if (result.ok) return result;
  if (result.failure.kind === 'session-ended' && session.peek()) hasEnded.value = true;
  if (result.failure.kind === 'incompatible') obstacle.value = result.failure;
  return result;
}

/** The main process could not do its part. Its errors quote nothing, and there is nothing to mend for whoever reads this. */
const consoleFailed: Failure = {
  kind: 'refused',
  code: 'internal',
  detail: 'The console could not do that. Try again.',
  errors: [],
  retryAfterSeconds: null,
};

/** Where what was remembered cannot be had, one starts as on the first day. */
const afresh: Beginning = {
  remembered: { server: '', email: '' },
  keeping: { possible: false, reason: 'The console could not look up what it had remembered.' },
  session: null,
};

/** Of several looks at the kept session, the last one counts, and none once somebody has gone on without. */
let beginTurn = 0;

/** Looks up what is remembered, and the kept session if there is one. */
export async function begin(): Promise<void> {
  beginTurn += 1;
  const turn = beginTurn;
  const found = await window.callkey.begin().catch(() => afresh);
  if (turn !== beginTurn) return;
  if (!beginning.peek()) {
    server.value = found.remembered.server;
    email.value = found.remembered.email;
  }
  obstacle.value = null;
  if (found.session?.ok) adopt(found.session.value);
  else if (found.session && found.session.failure.kind !== 'session-ended') noteObstacle(found.session.failure);
  beginning.value = found;
}

export async function signIn(input: SignIn): Promise<Result<SessionView>> {
  const result = await ask(window.callkey.signIn(input));
  if (result.ok) {
    obstacle.value = null;
    adopt(result.value);
  }
  return result;
}

/** Signs the same user in again where the session had ended, with the tenancy that was selected. */
export async function renew(password: string): Promise<Result<SessionView>> {
  const before = session.peek();
  const input = { server: server.peek(), email: before?.viewer.email ?? '', password, keepSignedIn: null };
  const result = await ask(window.callkey.signIn(input));
  if (!result.ok) return result;
  if (!before?.tenancy) adopt(result.value);
  else {
    const { kind, id } = before.tenancy;
    const selected = await ask(window.callkey.selectTenancy({ kind, id }));
    // Not without the tenancy: another one would be another set of everything, and what was typed would be lost.
    if (!selected.ok) return selected;
    adopt(selected.value);
  }
  return result;
}

export async function signOut(): Promise<void> {
  leave();
  await window.callkey.signOut().catch(() => undefined);
}

/** Goes back to signing in: whoever comes next starts at home. */
export function leave(): void {
  beginTurn += 1;
  screen.value = 'api-keys';
  opened.value = null;
  announcement.value = '';
  session.value = null;
  hasEnded.value = false;
  obstacle.value = null;
}

/** The one-time password is gone. */
export function passwordChanged(): void {
  const now = session.peek();
  if (!now) return;
  const { passwordChangeDue: _, ...rest } = now;
  session.value = rest;
}

export function adopt(view: SessionView): void {
  session.value = view;
  hasEnded.value = false;
  sessionTurn.value += 1;
}

function noteObstacle(failure: Failure): void {
  if (failure.kind === 'incompatible' || failure.kind === 'unreachable') obstacle.value = failure;
  else if (failure.kind === 'refused') obstacle.value = { kind: 'unreachable', detail: failure.detail };
}
