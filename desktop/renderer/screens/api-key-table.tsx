import type { ApiKeyView } from '#contract/console.ts';
import { Icon } from '../components/icons.tsx';
import { EndDay, Time } from '../components/time.tsx';
import { now } from '../state/clock.ts';
import { hasExpired } from '../state/key-list.ts';

type ApiKeyTableProps = { apiKeys: readonly ApiKeyView[]; highlighted: string | null; onRevoke: (key: ApiKeyView) => void };

export function ApiKeyTable({ apiKeys, highlighted, onRevoke }: ApiKeyTableProps) {
  // The core sends owners only to viewers who can see other users' keys.
  const hasOwners = apiKeys.some((key) => key.owner !== undefined);
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            {hasOwners && <th scope="col">Owner</th>}
            <th scope="col">Created</th>
            <th scope="col">Last used</th>
            <th scope="col">Expiry</th>
            <th scope="col">
              <span class="visually-hidden">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {apiKeys.map((key) => (
            <tr key={key.id} id={rowId(key.id)} class={key.id === highlighted ? 'highlighted' : undefined}>
              <th scope="row">{key.name}</th>
              {hasOwners && <td>{key.owner && <OwnerTag owner={key.owner} />}</td>}
              <td>
                <Time at={key.createdAt} />
              </td>
              <td>{key.lastUsedAt === null ? <span class="faint">Never</span> : <Time at={key.lastUsedAt} />}</td>
              <td>
                <Expiry apiKey={key} />
              </td>
              <td class="row-action">
                <button type="button" class="quiet icon-only" aria-label={`Revoke ${key.name}`} onClick={() => onRevoke(key)}>
                  <Icon name="trash" />
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Expiry({ apiKey }: { apiKey: ApiKeyView }) {
  if (apiKey.expiresAt === null) return <span class="faint">No expiration</span>;
  return (
    <>
      {hasExpired(apiKey, now.value) && <span class="badge expired">Expired</span>}{' '}
      <EndDay at={apiKey.expiresAt} zone={apiKey.expiryTimeZone} />
    </>
  );
}

export function OwnerTag({ owner }: { owner: NonNullable<ApiKeyView['owner']> }) {
  return <span class={owner.isYou ? 'tag you' : 'tag'}>{owner.isYou ? 'You' : owner.name}</span>;
}

function rowId(id: string): string {
  return `api-key-${id}`;
}

/** Moves the focus to a key's row once it is rendered, or to the heading if there is none. */
export function focusRow(id: string | null): void {
  requestAnimationFrame(() => {
    const row = id === null ? null : document.getElementById(rowId(id));
    row?.scrollIntoView({ block: 'nearest' });
    const target = row?.querySelector<HTMLElement>('button') ?? document.querySelector<HTMLElement>('main h1');
    target?.focus();
  });
}

/** The key in the next row, or in the previous one at the end: it gets the focus when this row goes away. */
export function neighbourOf(id: string): string | null {
  const row = document.getElementById(rowId(id));
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  return neighbour?.id.replace(/^api-key-/, '') ?? null;
}
