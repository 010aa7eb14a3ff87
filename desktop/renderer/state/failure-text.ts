import { counted } from '#contract/text/count.ts';
import { type Failure, type Result, refusal } from '../../ipc.ts';

export function describeFailure(failure: Failure): string {
  switch (failure.kind) {
    case 'unreachable':
      return `${failure.isOther ? '' : 'Can’t reach the server. '}${failure.detail}${failure.isUnsent ? ' Nothing was sent.' : ''}`;
    case 'session-ended':
      return 'Your session has ended. Sign in again, then retry.';
    case 'incompatible':
      return 'This console isn’t compatible with this server. Update whichever is older.';
    case 'refused':
      // If there were too many requests, the detail says when to try again.
      return failure.retryAfterSeconds === null || failure.code === 'too-many-requests'
        ? failure.detail
        : `${failure.detail} Try again in ${describeWait(failure.retryAfterSeconds)}.`;
  }
}

/** Whether the server may have done what it was asked, although its response didn't arrive. */
export function isInDoubt(failure: Failure | null): boolean {
  return failure?.kind === 'unreachable' && failure.isUnsent !== true;
}

/** What looking up a lost action finds: what its response would have contained, or null if it wasn't done. */
export type LookedUp<Value> = Result<{ done: Value } | null>;

export async function lookUpGone(reading: Promise<Result<unknown>>): Promise<LookedUp<null>> {
  const result = await reading;
  if (result.ok) return { ok: true, value: null };
  return isNotFound(result.failure) ? { ok: true, value: { done: null } } : result;
}

export async function lookUpChange<Value>(reading: Promise<Result<Value>>, isDone: (value: Value) => boolean): Promise<LookedUp<Value>> {
  const result = await reading;
  return result.ok ? { ok: true, value: isDone(result.value) ? { done: result.value } : null } : result;
}

/** Said if an action wasn't done, and its response was lost. */
export const notDone = refusal('unavailable', 'The connection was lost, and the server hasn’t done this. Try again.');

/** Whether something doesn't exist, or the viewer doesn't have access to it. */
export function isNotFound(failure: Failure): boolean {
  return failure.kind === 'refused' && failure.code === 'not-found';
}

/** Whether something has changed in the meantime, so that the request no longer applies. */
export function isConflict(failure: Failure): boolean {
  return failure.kind === 'refused' && failure.code === 'conflict';
}

/** Whether a failure may be temporary, so that the console retries automatically. */
export function isTransient(failure: Failure): boolean {
  return (
    failure.kind === 'unreachable' ||
    (failure.kind === 'refused' && ['unavailable', 'too-many-requests', 'internal'].includes(failure.code))
  );
}

/** Returns the core's message about one field of a form, or null. */
export function fieldError(failure: Failure | null, path: string): string | null {
  if (failure?.kind !== 'refused') return null;
  return failure.errors.find((error) => error.path === path || error.path.startsWith(`${path}.`))?.message ?? null;
}

/** Returns the message above a form's buttons, or null if one of the form's fields, or a dialog in front of the form, shows the failure. */
export function generalError(failure: Failure | null, fields: readonly string[] = []): string | null {
  // If the form showed these two kinds as well, its text would stay after that dialog has closed.
  if (failure === null || failure.kind === 'session-ended' || failure.kind === 'incompatible') return null;
  return fields.some((field) => fieldError(failure, field) !== null) ? null : describeFailure(failure);
}

function describeWait(seconds: number): string {
  return seconds < 90 ? counted(seconds, 'second') : counted(Math.ceil(seconds / 60), 'minute');
}
