import type { ApiKeyDetailsView, ApiKeyView } from '#contract/console/api-keys.ts';
import { referenceUrl } from '../../server-address.ts';
import { hasExpired, isExpiringSoon, summarizeLimits } from '../state/api-keys.ts';
import { now, ownZone } from '../state/clock.ts';
import { formatRelative } from '../state/format.ts';
import { capitalized } from '../state/labels.ts';
import { server, session } from '../state/session.ts';
import { useList } from './list.tsx';
import { Clip } from './table.tsx';
import { ExpiryDay, toExpiry } from './time.tsx';

/** Shows what a key has access to, on its own line. While that's loading, the line has the same height. */
export function KeyAccess({ id, subject = 'It' }: { id: string; subject?: string }) {
  const load = () => window.callkey.request('showApiKey', { id, timeZone: ownZone.peek() });
  const { view } = useList({ key: `access/${id}`, every: null, load }).state.value;
  return (
    <p aria-busy={view === null}>
      <Clip>
        {subject} has access to {view ? <AccessScope scope={view.reach} /> : '…'}.
      </Clip>
    </p>
  );
}

type AccessScopeProps = { scope: ApiKeyDetailsView['reach']; isSentence?: boolean };

export function AccessScope({ scope: { kind, name }, isSentence = false }: AccessScopeProps) {
  return (
    <>
      {isSentence ? 'All' : 'all'} campaigns in {kind === 'partner' && 'all accounts under '}
      <bdi>{name}</bdi>
    </>
  );
}

/** Says that a key is refused because its owner is disabled. In a table, shows only one word, because the name needs the space. */
export function RefusedBadge({ apiKey, isInTable = false }: { apiKey: ApiKeyView; isInTable?: boolean }) {
  if (!apiKey.ownerDisabled) return null;
  return (
    <span class="badge warn" data-tip={isInTable ? 'The owner is disabled' : undefined}>
      Refused{!isInTable && ': owner disabled'}
    </span>
  );
}

export function LimitedBadge({ apiKey }: { apiKey: ApiKeyView }) {
  const limits = summarizeLimits(apiKey);
  if (limits === '') return null;
  return (
    <span class="badge" data-tip={capitalized(limits)}>
      Limited
    </span>
  );
}

export function Expiry({ apiKey, isInTable = false }: { apiKey: ApiKeyView; isInTable?: boolean }) {
  if (apiKey.expiresAt === null) return <span class="faint">No expiration</span>;
  return (
    <span class="line">
      <ExpiryDay at={apiKey.expiresAt} zone={apiKey.expiryTimeZone} isInTable={isInTable} /> <ExpiryBadge apiKey={apiKey} />
    </span>
  );
}

export function ExpiryBadge({ apiKey }: { apiKey: ApiKeyView }) {
  if (apiKey.expiresAt === null) return null;
  if (hasExpired(apiKey, now.value)) return <span class="badge bad">Expired</span>;
  if (!isExpiringSoon(apiKey, now.value)) return null;
  return <span class="badge warn">{formatRelative(toExpiry(apiKey.expiresAt, null), now.value)}</span>;
}

export function OwnerTag({ owner }: { owner: NonNullable<ApiKeyView['owner']> }) {
  return <bdi class={owner.isYou ? 'tag you' : 'tag'}>{owner.isYou ? 'You' : owner.name}</bdi>;
}

/** Shows a sentence about the server's page for integrators, with a link. Shows nothing if the server doesn't have that page. */
export function ReferenceLink({ verb }: { verb: string }) {
  if (session.value?.reference === false) return null;
  return (
    <>
      <a href={referenceUrl(server.value)} target="_blank" rel="noreferrer">
        The API reference
      </a>{' '}
      {verb}
    </>
  );
}
