import type { Failure } from '../../ipc.ts';
import { pluralize } from './format.ts';

/** Describes a failure in sentences that say what happened and what to do. */
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
  return seconds < 90 ? pluralize(seconds, 'second') : pluralize(Math.ceil(seconds / 60), 'minute');
}
