import { counted } from '#contract/text/count.ts';
import { readableEmail } from '#contract/text/email.ts';
import { timestamp } from '#contract/text/text.ts';
import type { DeletionImpact, ListedUser, User } from '../domain/model.ts';
import { shortName, table } from './program/table.ts';

export function userJson({ id, email, name, userType, account, partner }: User) {
  return { id, email: readableEmail(email), name, userType, accountId: account?.id ?? null, partnerId: partner?.id ?? null };
}

export function listedJson({ createdAt, lastSignInAt, disabledAt, ...user }: ListedUser) {
  return {
    ...userJson(user),
    createdAt: timestamp(createdAt),
    lastSignInAt: lastSignInAt && timestamp(lastSignInAt),
    disabledAt: disabledAt && timestamp(disabledAt),
    apiKeys: user.apiKeys,
    secondFactor: user.hasSecondFactor,
    link: user.link && { ...user.link, linkedAt: timestamp(user.link.linkedAt) },
  };
}

/** A user's active API keys, and the maximum. */
type KeyQuota = { active: number; max: number };

/** @property recoveryCodes how many the user hasn't used yet */
type ShownUser = { user: ListedUser; impact: DeletionImpact; quota: KeyQuota; recoveryCodes: number };

export function shownJson({ user, impact: { apiKeys, sessions }, quota: { active, max }, recoveryCodes }: ShownUser) {
  const keys = apiKeys.map(({ id, name, lastUsedAt, queuedCalls }) => ({
    ...{ id, name, queuedCalls },
    lastUsedAt: lastUsedAt && timestamp(lastUsedAt),
  }));
  return { ...listedJson(user), recoveryCodes, apiKeys: keys, activeApiKeys: active, maxActiveApiKeys: max, sessions };
}

/** Formats a row of the user list. */
export function toRow(user: ListedUser): string[] {
  const { email, name, userType, apiKeys, lastSignInAt, disabledAt } = user;
  const lastSignIn = lastSignInAt ? timestamp(lastSignInAt) : 'Never';
  return [
    readableEmail(email),
    shortName(name),
    userType,
    belongsTo(user),
    String(apiKeys),
    disabledAt ? `${lastSignIn} (disabled)` : lastSignIn,
  ];
}

export function belongsTo({ partner, account }: User): string {
  return [partner, account].flatMap((of) => (of ? [shortName(of.name)] : [])).join(' / ');
}

export function formatUser({ user, impact: { apiKeys, sessions }, quota: { active, max }, recoveryCodes }: ShownUser): string {
  const facts = [
    ['ID', user.id],
    ['Name', user.name],
    ['Type', user.userType],
    ['Partner', user.partner ? `${user.partner.name} (${user.partner.id})` : ''],
    ['Account', user.account ? `${user.account.name} (${user.account.id})` : ''],
    ['Created', timestamp(user.createdAt)],
    ['Last sign-in', user.lastSignInAt ? timestamp(user.lastSignInAt) : 'Never'],
    ['Disabled', user.disabledAt ? timestamp(user.disabledAt) : ''],
    ['Second factor', user.hasSecondFactor ? `on, ${counted(recoveryCodes, 'recovery code')} left` : 'off'],
    ['Linked to', user.link ? `${user.link.subject} at ${user.link.issuer}, since ${timestamp(user.link.linkedAt)}` : ''],
    ['Sessions', String(sessions)],
    ['API keys', `${user.apiKeys}, ${active} of them active (MAX_ACTIVE_KEYS_PER_USER is ${max})`],
  ].filter(([, value]) => value !== '');
  const keys = apiKeys.map((key) => [
    key.id,
    shortName(key.name),
    key.lastUsedAt ? timestamp(key.lastUsedAt) : 'Never',
    `${key.queuedCalls}`,
  ]);
  const lines = [table(['Email', readableEmail(user.email)], facts)];
  if (keys.length > 0) lines.push('', table(['KEY', 'NAME', 'LAST USED', 'QUEUED CALLS'], keys));
  return lines.join('\n');
}
