import type { ApiKeyView } from '#contract/console.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { Details, Facts } from '../components/details.tsx';
import { endOf, Moment } from '../components/time.tsx';
import { ownZone } from '../state/clock.ts';
import { formatInstant } from '../state/format-time.ts';
import { ExpiryBadge, OwnerTag } from './api-key-table.tsx';

type ApiKeyDetailsProps = { apiKey: ApiKeyView; onRevoke: () => void; onClose: () => void };

/** All about one key, and what can be done with it. */
export function ApiKeyDetails({ apiKey, onRevoke, onClose }: ApiKeyDetailsProps) {
  const { id, name, owner, createdAt, lastUsedAt } = apiKey;
  return (
    <Details title={name} badge={<ExpiryBadge apiKey={apiKey} />} onClose={onClose}>
      <Facts
        facts={[
          ...(owner ? ([['Owner', <OwnerTag key="owner" owner={owner} />]] as const) : []),
          ['Created', <Moment key="created" at={createdAt} />],
          ['Expiry', <Expiry key="expiry" apiKey={apiKey} />],
          ['Last used', lastUsedAt === null ? 'Never' : <Moment key="used" at={lastUsedAt} />],
          [
            'Id',
            <span key="id" class="copyable">
              <code>{id}</code>
              <CopyButton text={id} what="Id" />
            </span>,
          ],
        ]}
      />
      <div class="actions at-start">
        <button type="button" class="warns" onClick={onRevoke}>
          Revoke …
        </button>
      </div>
    </Details>
  );
}

/** The last moment in the zone it was chosen in, and in the machine's own where that is another. */
function Expiry({ apiKey: { expiresAt, expiryTimeZone } }: { apiKey: ApiKeyView }) {
  if (expiresAt === null) return <>No expiration</>;
  const end = endOf(expiresAt, expiryTimeZone);
  const here = end.setZone(ownZone.value);
  return (
    <>
      {formatInstant(end)}
      {here.zoneName !== end.zoneName && <span class="caption">{formatInstant(here)}, where you are</span>}
    </>
  );
}
