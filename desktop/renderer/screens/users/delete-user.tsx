import type { DeletionView, UserView } from '#contract/console/users.ts';
import { ConfirmDanger } from '../../components/confirm.tsx';
import { ExportRowsButton } from '../../components/export-buttons.tsx';
import { useList } from '../../components/list.tsx';
import { ShortTable } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { now } from '../../state/clock.ts';
import { lookUpGone } from '../../state/failure-text.ts';
import { formatNumber, pluralize, sorted } from '../../state/format.ts';

/** Beyond this many keys, the user must confirm by typing the email address. */
const confirmAbove = 10;
/** A key used within this many days is probably still in use. */
const recentDays = 7;
/** Reserve the space that the rows will need, up to the height of the table. */
const placeholders = Array.from({ length: 8 }, () => ['', '', '']);

type DeleteUserProps = { user: UserView; onDeleted: () => void; onAlreadyDeleted: () => void; onClose: () => void };

/** @property apiKeys null before the core has listed them; `sessions` likewise */
type Preview = Omit<DeletionView, 'apiKeys' | 'sessions'> & { apiKeys: DeletionView['apiKeys'] | null; sessions: number | null };

export function DeleteUser({ user, onDeleted, onAlreadyDeleted, onClose }: DeleteUserProps) {
  // Until the preview arrives, uses the number of keys from the list, so that nothing in the dialog moves.
  const preview = useList<Preview>({
    key: `deletion/${user.id}`,
    every: null,
    load: () => window.callkey.request('previewDeletion', { id: user.id }),
    initial: { user, apiKeys: null, nextCursor: null, sessions: null },
  });
  const { apiKeys: keys } = preview.state.value.view?.user ?? user;
  return (
    <ConfirmDanger
      title={`Delete ${user.name}?`}
      lead={
        <>
          <strong>{user.email}</strong> will be signed out immediately and won’t be able to sign in again. You can’t undo this.
        </>
      }
      isWide
      preview={preview}
      describe={(view) => <DeletionPreview view={view} />}
      countQueuedCalls={({ apiKeys, nextCursor }) =>
        nextCursor === null && apiKeys ? apiKeys.reduce((sum, key) => sum + key.queuedCalls, 0) : null
      }
      confirmation={
        keys > confirmAbove ? { label: `Type ${user.email} to delete this user and ${pluralize(keys, 'key')}`, text: user.email } : null
      }
      verb="Delete"
      verbing="Deleting…"
      act={(cancelQueuedCalls) =>
        window.callkey.request('deleteUser', { id: user.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null })
      }
      lookUp={() => lookUpGone(window.callkey.request('previewDeletion', { id: user.id }))}
      onDone={onDeleted}
      onAlreadyRemoved={onAlreadyDeleted}
      onClose={onClose}
    />
  );
}

function DeletionPreview({ view: { user, apiKeys, nextCursor, sessions } }: { view: Preview }) {
  return (
    <>
      {user.apiKeys === 0 && !apiKeys?.length ? (
        <p>This user has no API keys.</p>
      ) : (
        <>
          <p class="two-lines-high">{apiKeys ? <Effect {...{ user, apiKeys, nextCursor }} /> : 'Loading keys…'}</p>
          <div class="row">
            <ExportRowsButton name="api-keys" file={keysFile} head={keyHead} load={(cursor) => loadKeys(user.id, cursor)} />
          </div>
          <ShortTable
            head={[['Key'], ['Last used', 'day'], ['Calls not yet dialed', 'moment']]}
            rows={apiKeys ? toRows(apiKeys) : placeholders.slice(0, user.apiKeys)}
          />
        </>
      )}
      <p class="hint">{sessions === null ? 'Loading sessions…' : describeSessions(sessions)}</p>
    </>
  );
}

function Effect({ user, apiKeys, nextCursor }: Pick<DeletionView, 'user' | 'apiKeys' | 'nextCursor'>) {
  // In a long list, only one page is loaded, so expired keys can't be counted.
  const expired = nextCursor === null ? apiKeys.filter((key) => key.expired).length : 0;
  return (
    <>
      <strong>{pluralize(user.apiKeys - expired, 'API key')} will stop working</strong> immediately
      {expired > 0 && `; ${formatNumber(expired)} ${expired === 1 ? 'has' : 'have'} already expired`}.{' '}
      {nextCursor !== null && `The table lists the newest ${formatNumber(apiKeys.length)}. Of these, `}
      <RecentlyUsed isStart={nextCursor === null} lastUsed={apiKeys.map(({ lastUsedAt }) => lastUsedAt)} />
    </>
  );
}

function toRows(apiKeys: DeletionView['apiKeys']) {
  return sorted(apiKeys, ({ lastUsedAt }) => lastUsedAt && Date.parse(lastUsedAt), true).map(({ name, lastUsedAt, queuedCalls }) => [
    name,
    lastUsedAt === null ? <span class="faint">Never</span> : <Time at={lastUsedAt} />,
    queuedCalls,
  ]);
}

function describeSessions(sessions: number): string {
  if (sessions === 0) return 'Not currently signed in.';
  return `Currently signed in${sessions === 1 ? '' : ` (${pluralize(sessions, 'session')})`}.`;
}

const keysFile = 'keys-of-user.csv';
const keyHead = ['ID', 'Name', 'Last used', 'Calls not yet dialed'] as const;

async function loadKeys(id: string, cursor: string | null) {
  const result = await window.callkey.request('previewDeletion', { id, cursor });
  if (!result.ok) return result;
  const { apiKeys, nextCursor } = result.value;
  const rows = apiKeys.map((key) => [key.id, key.name, key.lastUsedAt ?? 'Never', String(key.queuedCalls)]);
  return { ok: true as const, value: { rows, nextCursor } };
}

/** Says whether integrations still depend on these keys. */
function RecentlyUsed({ lastUsed, isStart }: { lastUsed: readonly (string | null)[]; isStart: boolean }) {
  const since = now.value.minus({ days: recentDays }).toMillis();
  const count = lastUsed.filter((at) => at !== null && Date.parse(at) >= since).length;
  if (count === 0)
    return (
      <>
        {lastUsed.length === 1 ? 'It wasn’t' : isStart ? 'None were' : 'none were'} used in the last {recentDays} days.
      </>
    );
  return (
    <>
      {pluralize(count, 'was', 'were')} used in the last {recentDays} days. If something still depends on {count === 1 ? 'it' : 'them'},
      replace {count === 1 ? 'it' : 'them'} first.
    </>
  );
}
