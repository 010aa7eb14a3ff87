import type { CancelledCallView, PlacedCallView } from '#contract/calls/calls.ts';
import { type EventView, staffAddress } from '#contract/console/activity.ts';
import type { ApiKeyDetailsView, ApiKeyView } from '#contract/console/api-keys.ts';
import type { CallDetailsView, CallView } from '#contract/console/calls.ts';
import type { Named } from '#contract/console/common.ts';
import type { SessionView, TenanciesView } from '#contract/console/session.ts';
import type { DeletionView, UserView } from '#contract/console/users.ts';
import { isExpired } from '#contract/expiry.ts';
import { readableEmail } from '#contract/text/email.ts';
import { timestamp } from '#contract/text/text.ts';
import type { KeyDetails } from '../domain/api-keys.ts';
import type { CancelledCall, PlacedCall } from '../domain/calls/calls.ts';
import { scopeFor, seesOthersKeys } from '../domain/directory/scope.ts';
import type { DeletionPreview } from '../domain/directory/users.ts';
import { awaySince } from '../domain/directory/users.ts';
import type { Millis } from '../domain/instant.ts';
import type { ApiKey, CallDetails, ListedCall, ListedEvent, ListedUser, Person, Session, Tenancy, User, Viewer } from '../domain/model.ts';
import { getCallZones } from '../domain/protection/judge.ts';
import { isSecondFactorDue } from '../domain/sign-in/sessions.ts';
import type { HttpDeps } from './middleware/context.ts';

export function placedCallView(call: PlacedCall): PlacedCallView {
  const { requestId, contactId, campaignId, placedAt, heldUntil } = call;
  const view: PlacedCallView = { requestId, contactId, campaignId, state: 'queued', placedAt: timestamp(placedAt) };
  if (heldUntil !== null) view.heldUntil = timestamp(heldUntil);
  return view;
}

export function cancelledCallView(call: CancelledCall): CancelledCallView {
  const { requestId, contactId, campaignId, cancelledAt } = call;
  return { requestId, contactId, campaignId, state: 'cancelled', cancelledAt: timestamp(cancelledAt) };
}

export function apiKeyView(key: ApiKey, viewer: Viewer, now: Millis): ApiKeyView {
  const view: ApiKeyView = {
    id: key.id,
    name: key.name,
    createdAt: timestamp(key.createdAt),
    lastUsedAt: key.lastUsedAt && timestamp(key.lastUsedAt),
    expiresAt: key.expiresAt && timestamp(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: isExpired(key.expiresAt, now),
    addresses: key.limits?.addresses ? [...key.limits.addresses] : null,
    callsPerDay: key.limits?.callsPerDay ?? null,
    limitsVersion: key.limits?.version ?? null,
  };
  if (seesOthersKeys(scopeFor(viewer).apiKeys)) view.owner = { ...ownerView(key.creator, viewer), ...emailFor(key.creator, viewer) };
  if (key.creator.isDisabled) view.ownerDisabled = true;
  if ((key.creator.lastSignInAt ?? key.createdAt) < awaySince(now)) view.ownerAway = true;
  return view;
}

export function apiKeyDetailsView(details: KeyDetails, viewer: Viewer, now: Millis): ApiKeyDetailsView {
  const { apiKey, createdIn, reach, usage, activity, lastUsedAddress, today } = details;
  return {
    apiKey: apiKeyView(apiKey, viewer, now),
    ...{ createdIn, reach },
    lastUsedAddress: isFullyShown(apiKey.creator, viewer) ? lastUsedAddress : null,
    usage: usage.map(({ refused, ...counts }) => (refused > 0 ? { ...counts, refused } : counts)),
    today: today && { ...today, resetsAt: timestamp(today.resetsAt) },
    activity: activity.map((event) => eventView(event, viewer)),
  };
}

export function sessionView(session: Session, { dialer, hasReference, ports, version }: HttpDeps): SessionView {
  const { user, tenancy } = session;
  return {
    viewer: viewerView(user),
    tenancy: tenancy && tenancyView(tenancy),
    ...(session.passwordChangeDue ? { passwordChangeDue: true } : {}),
    secondFactor: session.hasSecondFactor,
    ...(isSecondFactorDue(ports, session) ? { secondFactorDue: true } : {}),
    dialer,
    reference: hasReference,
    version,
    ...(session.issuer !== null && ports.provider ? { signedInWith: ports.provider.name } : {}),
    ...(session.beganWithLink ? { justLinked: true } : {}),
  };
}

/** Returns an account with its partner's name, because two accounts may have the same name. */
export function tenancyView({ kind, id, name, partnerName }: Tenancy): TenanciesView['tenancies'][number] {
  return { kind, id, name, ...(kind === 'account' ? { partnerName } : {}) };
}

export function callView(call: ListedCall, viewer: Viewer): CallView {
  return {
    requestId: call.requestId,
    contactId: call.contactId,
    contact: { phone: call.phone, name: call.name },
    state: call.state,
    detail: call.detail,
    placedAt: timestamp(call.placedAt),
    dialedAt: call.dialedAt && timestamp(call.dialedAt),
    endedAt: call.endedAt && timestamp(call.endedAt),
    apiKey: call.apiKey && { id: call.apiKey.id, name: call.apiKey.name, owner: ownerView(call.apiKey.creator, viewer) },
    simulated: call.isSimulated,
    heldUntil: call.heldUntil && timestamp(call.heldUntil),
    heldZone: call.heldUntil === null ? null : findZone(call),
    campaign: call.campaign,
  };
}

/** Returns the time zone of a contact; null unless exactly one is possible. */
function findZone({ phone, timeZone }: ListedCall): string | null {
  const [zone, ...others] = phone === null ? [] : getCallZones({ phone, timeZone });
  return zone === undefined || others.length > 0 ? null : zone;
}

export function callDetailsView({ call, ...details }: CallDetails, viewer: Viewer): CallDetailsView {
  const { variables, notBefore, notAfter, durationSeconds, attempts, firstAttemptAt, nextAttemptAt, toldLateAt } = details;
  return {
    call: callView(call, viewer),
    ...{ timeZone: call.timeZone, variables, durationSeconds, attempts },
    notBefore: notBefore && timestamp(notBefore),
    notAfter: notAfter && timestamp(notAfter),
    firstAttemptAt: firstAttemptAt && timestamp(firstAttemptAt),
    nextAttemptAt: nextAttemptAt && timestamp(nextAttemptAt),
    toldLateAt: toldLateAt && timestamp(toldLateAt),
  };
}

export function userView(user: ListedUser): UserView {
  const { account, partnerName } = user;
  return {
    ...viewerView(user),
    account: account && { id: account.id, name: account.name, ...(partnerName === null ? {} : { partnerName }) },
    createdAt: timestamp(user.createdAt),
    lastSignInAt: user.lastSignInAt && timestamp(user.lastSignInAt),
    disabledAt: user.disabledAt && timestamp(user.disabledAt),
    apiKeys: user.apiKeys,
    link: user.link && { ...user.link, linkedAt: timestamp(user.link.linkedAt) },
    secondFactor: user.hasSecondFactor,
  };
}

export function deletionView({ user, apiKeys, sessions }: DeletionPreview, now: Millis): DeletionView {
  return {
    user: userView(user),
    apiKeys: apiKeys.items.map(({ id, name, lastUsedAt, expiresAt, queuedCalls }) => ({
      ...{ id, name, queuedCalls, expired: isExpired(expiresAt, now) },
      lastUsedAt: lastUsedAt && timestamp(lastUsedAt),
    })),
    nextCursor: apiKeys.nextCursor,
    sessions,
  };
}

/**
 * Whether a viewer sees everything about a person. If not, the person is one of the service's staff, and only other staff see their email
 * address, and the addresses from which they or their keys reach the core. This is the only code that decides it.
 */
export function isFullyShown({ isStaff }: Pick<Person, 'isStaff'>, { userType }: Viewer): boolean {
  return userType === 'staff' || !isStaff;
}

export function personView(person: Person, viewer: Viewer): Named & { email?: string } {
  return { id: person.id, name: person.name, ...emailFor(person, viewer) };
}

function emailFor(person: Person, viewer: Viewer): { email?: string } {
  return person.email !== null && isFullyShown(person, viewer) ? { email: readableEmail(person.email) } : {};
}

/** Returns an event for the viewer. Only staff can see the names of the operating system's users, and from where other staff act. */
export function eventView({ id, at, actor, action, subject, address, detail }: ListedEvent, viewer: Viewer): EventView {
  const shownAddress = actor && !isFullyShown(actor, viewer) ? staffAddress : address;
  return {
    ...{ id, at: timestamp(at), actor: actor && personView(actor, viewer), action, subject },
    address: viewer.userType === 'staff' ? shownAddress : shownAddress.replace(/^local:.*/, 'local'),
    ...(detail === undefined ? {} : { detail }),
  };
}

function viewerView({ id, email, name, userType, account, partner }: User): SessionView['viewer'] {
  return { id, email: readableEmail(email), name, userType, account: named(account), partner: named(partner) };
}

function ownerView(creator: Named, viewer: Viewer) {
  return { isYou: creator.id === viewer.id, name: creator.name };
}

function named(entity: Named | null): Named | null {
  return entity && { id: entity.id, name: entity.name };
}
