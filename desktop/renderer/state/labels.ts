import type { AnsweredBy } from '#contract/calls/dialer.ts';
import type { CallState } from '#contract/calls/states.ts';
import type { UserType } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { UserView } from '#contract/console/users.ts';

export const userTypeLabels: Readonly<Record<UserType, string>> = {
  account: 'Account user',
  partner: 'Partner user',
  staff: 'Service staff',
};

/** Formats a user's account and its partner: "Blue Clinic, Northwind Voice". Empty for service staff. */
export function formatMembership({ account, partner }: Pick<UserView, 'account' | 'partner'>): string {
  return [account?.name, partner?.name ?? account?.partnerName].filter((name) => name !== undefined).join(', ');
}

/** Returns what a user belongs to as the viewer sees it: without the viewer's own tenancy, which would be the same in every row. */
export function formatPlace(user: Pick<UserView, 'account' | 'partner'>, { viewer, tenancy }: SessionView): string {
  const own = viewer.userType === 'staff' ? tenancy : (viewer.account ?? viewer.partner);
  if ((user.account ?? user.partner)?.id === own?.id) return '';
  return user.account && own ? user.account.name : formatMembership(user);
}

export const callStateTones: Readonly<Record<CallState, 'good' | 'bad' | 'warn' | ''>> = {
  queued: 'good',
  dialing: 'good',
  completed: 'good',
  no_answer: '',
  busy: '',
  failed: 'bad',
  unknown: 'warn',
  cancelled: '',
  lapsed: '',
  blocked: 'warn',
};

export const answererLabels: Readonly<Record<AnsweredBy, string>> = { person: 'A person', machine: 'A machine', unknown: 'Unknown' };

const actionLabels: Readonly<Record<string, string>> = {
  'session.started': 'signed in',
  'session.ended': 'signed out',
  'session.refused': 'failed to sign in',
  'session.refused-unknown': 'failed to sign in, because there’s no matching user:',
  'session.refused-disabled': 'failed to sign in, because the user is disabled:',
  'session.refused-unverified': 'failed to sign in, because the provider didn’t verify the email address:',
  'session.refused-other-person': 'failed to sign in, because the user is linked to another identity:',
  'session.revoked': 'ended the sessions of',
  'tenancy.selected': 'switched to',
  'password.changed': 'changed the password of',
  'password.reset': 'reset the password of',
  'second-factor.enabled': 'turned on the second factor for',
  'second-factor.removed': 'turned off the second factor for',
  'second-factor.reset': 'reset the second factor for',
  'second-factor.refused': 'entered a wrong code for',
  'recovery-code.used': 'used a recovery code for',
  'recovery-codes.renewed': 'replaced the recovery codes of',
  'api-key.created': 'created the API key',
  'api-key.limited': 'changed the limits of the API key',
  'api-key.refused': 'made a request from a disallowed address with the API key',
  'api-key.revoked': 'revoked the API key',
  'user.added': 'created the user',
  'user.changed': 'changed the user',
  'user.disabled': 'disabled the user',
  'user.enabled': 'enabled the user',
  'user.deleted': 'deleted the user',
  'user.linked': 'was linked to an identity at the provider:',
  'user.unlinked': 'unlinked the user',
  'partner.added': 'created the partner',
  'partner.changed': 'changed the partner',
  'account.added': 'created the account',
  'account.changed': 'changed the account',
  'campaign.added': 'created the campaign',
  'campaign.changed': 'changed the campaign',
  'partner.deleted': 'deleted the partner',
  'account.deleted': 'deleted the account',
  'campaign.deleted': 'deleted the campaign',
  'contact.erased': 'erased a contact:',
  'contact.exported': 'exported a contact:',
  'backup.created': 'created the backup',
  'list.exported': 'exported',
  'retention.run': 'erased contact data from',
  'audit.pruned': 'deleted old audit events:',
  'clock.accepted': 'confirmed the clock:',
  'do-not-call.added': 'added to the do-not-call list:',
  'do-not-call.imported': 'imported into the do-not-call list:',
  'do-not-call.lifted': 'removed from the do-not-call list:',
  'calling-hours.changed': 'changed the calling hours of',
  'numbers.changed': 'changed the allowed numbers of',
  'dialing.stopped': 'stopped dialing for',
  'dialing.resumed': 'resumed dialing for',
  'pace.changed': 'changed the pace of',
  'contact-limits.changed': 'changed the contact limits of',
};

/** What to call a row of an exported list. */
export const listNouns: Readonly<Record<string, string>> = { 'api-keys': 'API key', users: 'user', calls: 'call', activity: 'event' };

/** Describes an audit action as a verb. If it has no label, because it comes from a newer core, returns it unchanged. */
export function actionLabel(action: string): string {
  return actionLabels[action] ?? action;
}

/** Describes the campaigns that a key created by the viewer would have access to; null if the viewer can't create one. */
export function describeKeyAccess(session: SessionView): string | null {
  const { viewer, tenancy } = session;
  if (viewer.userType === 'account') return `all campaigns in ${viewer.account?.name ?? 'your account'}`;
  if (viewer.userType === 'partner') return `all campaigns in all accounts under ${viewer.partner?.name ?? 'your partner'}`;
  if (!tenancy) return null;
  return `all campaigns in ${tenancy.kind === 'account' ? '' : 'all accounts under '}${formatTenancy(session)}`;
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the name of the viewer's tenancy: the selected tenancy, or the viewer's own account or partner. */
export function tenancyName({ viewer, tenancy }: SessionView): string {
  if (viewer.userType === 'staff') return tenancy?.name ?? 'None selected';
  return viewer.account?.name ?? viewer.partner?.name ?? '';
}

/** Returns the selected tenancy's name, along with an account's partner, because two accounts may have the same name. */
export function formatTenancy(session: SessionView): string {
  return [tenancyName(session), session.tenancy?.partnerName ?? ''].filter((name) => name !== '').join(', ');
}

/** Returns a server's address without its scheme: "calls.example.com". */
export function serverHost(server: string): string {
  return server.replace(/^https?:\/\//, '').replace(/\/+$/, '');
}

/** Builds the window title: "API keys · Blue Clinic · calls.example.com". */
export function windowTitle(screen: string, session: SessionView, server: string): string {
  return [screen, formatTenancy(session), serverHost(server)].filter((part) => part !== '').join(' · ');
}
