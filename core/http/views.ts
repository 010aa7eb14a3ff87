import type { DateTime } from 'luxon';
import type { CancelledCallView, PlacedCallView } from '#contract/calls.ts';
import type { ApiKeyView, SessionView } from '#contract/console.ts';
import { isExpired } from '#contract/expiry.ts';
import type { CancelledCall, PlacedCall } from '../domain/calls.ts';
import type { ApiKey, Session } from '../domain/ports.ts';
import { scopeOf, seesOthersKeys, type Viewer } from '../domain/tenancy.ts';

/** RFC 3339 in UTC with milliseconds. */
function wire(at: DateTime): string {
  return at.toJSDate().toISOString();
}

export function placedCallView(call: PlacedCall): PlacedCallView {
  const { requestId, contactId, campaignId, placedAt } = call;
  return { requestId, contactId, campaignId, state: 'queued', placedAt: new Date(placedAt).toISOString() };
}

export function cancelledCallView(call: CancelledCall): CancelledCallView {
  const { requestId, contactId, campaignId, cancelledAt } = call;
  return { requestId, contactId, campaignId, state: 'cancelled', cancelledAt: new Date(cancelledAt).toISOString() };
}

export function apiKeyView(key: ApiKey, viewer: Viewer, now: DateTime): ApiKeyView {
  const view: ApiKeyView = {
    id: key.id,
    name: key.name,
    createdAt: wire(key.createdAt),
    lastUsedAt: key.lastUsedAt && wire(key.lastUsedAt),
    expiresAt: key.expiresAt && wire(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: isExpired(key.expiresAt?.toMillis() ?? null, now.toMillis()),
  };
  if (seesOthersKeys(scopeOf(viewer).apiKeys)) view.owner = { isYou: key.creator.id === viewer.id, name: key.creator.name };
  return view;
}

export function sessionView(session: Session): SessionView {
  const { user, tenancy } = session;
  const named = (thing: { id: string; name: string } | null) => thing && { id: thing.id, name: thing.name };
  return {
    viewer: {
      id: user.id,
      email: user.email,
      name: user.name,
      userType: user.userType,
      account: named(user.account),
      partner: named(user.partner),
    },
    tenancy: tenancy && { kind: tenancy.kind, id: tenancy.id, name: tenancy.name },
    ...(session.passwordChangeDue ? { passwordChangeDue: true } : {}),
  };
}
