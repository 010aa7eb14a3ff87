import type { CallState } from '#contract/calls.ts';
import type { SessionView, UserType, UserView } from '#contract/console.ts';
import type { Failure } from '../../ipc.ts';

/** A failure as a sentence that says what to do. */
export function wordsOf(failure: Failure): string {
  switch (failure.kind) {
    case 'unreachable':
      return `The core cannot be reached. ${failure.detail}`;
    case 'session-ended':
      return 'Your session has ended. Sign in again, and then try once more.';
    case 'incompatible':
      return 'This core cannot be worked with.';
    case 'refused':
      return failure.retryAfterSeconds === null ? failure.detail : `${failure.detail} Try again in ${seconds(failure.retryAfterSeconds)}.`;
  }
}

/** What the core says of one field of a form, if anything. */
export function fieldError(failure: Failure | null, path: string): string | null {
  if (failure?.kind !== 'refused') return null;
  return failure.errors.find((error) => error.path === path || error.path.startsWith(`${path}.`))?.message ?? null;
}

/** What is left to say of a failure once the named fields have said theirs. */
export function generalError(failure: Failure | null, fields: readonly string[]): string | null {
  // What lies over the form says these itself, and here its words would stay behind.
  if (
    !failure ||
    failure.kind === 'session-ended' ||
    failure.kind === 'incompatible' ||
    fields.some((field) => fieldError(failure, field) !== null)
  )
    return null;
  return wordsOf(failure);
}

function seconds(count: number): string {
  return count < 90 ? plural(count, 'second') : plural(Math.ceil(count / 60), 'minute');
}

const numbers = new Intl.NumberFormat('en');

export function number(count: number): string {
  return numbers.format(count);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export const userTypeWords: Readonly<Record<UserType, string>> = {
  account: 'Account user',
  partner: 'Partner user',
  staff: 'Service staff',
};

/** Where a user belongs: the account, the partner, or the one beneath the other. Empty where it is neither. */
export function placeOf({ account, partner }: Pick<UserView, 'account' | 'partner'>): string {
  return [account?.name, partner?.name].filter((name) => name !== undefined).join(', ');
}

/** How far a call has come. */
export const stateWords: Readonly<Record<CallState, string>> = {
  queued: 'Queued',
  dialing: 'Dialing',
  completed: 'Ended',
  no_answer: 'Ended',
  busy: 'Ended',
  failed: 'Ended',
  unknown: 'Ended',
  cancelled: 'Cancelled',
  lapsed: 'Lapsed',
};

/** What came of a call that was dialed. */
export const outcomeWords: Readonly<Partial<Record<CallState, string>>> = {
  completed: 'Completed',
  no_answer: 'No answer',
  busy: 'Busy',
  failed: 'Failed',
  unknown: 'Unknown',
};

const actionWords: Readonly<Record<string, string>> = {
  'session.started': 'signed in',
  'session.ended': 'signed out',
  'session.revoked': 'ended the sessions of',
  'tenancy.selected': 'switched to',
  'password.changed': 'changed the password of',
  'password.reset': 'reset the password of',
  'api-key.created': 'created the API key',
  'api-key.revoked': 'revoked the API key',
  'user.added': 'added the user',
  'user.changed': 'changed the user',
  'user.deleted': 'deleted the user',
  'partner.added': 'added the partner',
  'partner.changed': 'changed the partner',
  'account.added': 'added the account',
  'account.changed': 'changed the account',
  'campaign.added': 'added the campaign',
  'campaign.changed': 'changed the campaign',
};

/** An audit action as a verb; one that is not known here as it is. */
export function actionWord(action: string): string {
  return actionWords[action] ?? action;
}

/** What a key that the viewer makes now would reach; null where none can be made. */
export function reachOf({ viewer, tenancy }: SessionView): string | null {
  if (viewer.userType === 'account') return `every campaign of ${viewer.account?.name ?? 'your account'}`;
  if (viewer.userType === 'partner') return `every campaign of every account beneath ${viewer.partner?.name ?? 'your partner'}`;
  if (!tenancy) return null;
  return tenancy.kind === 'account' ? `every campaign of ${tenancy.name}` : `every campaign of every account beneath ${tenancy.name}`;
}
