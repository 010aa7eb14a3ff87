import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView, CreatedApiKeyView, SessionView } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { Icon } from '../components/icons.tsx';
import { Empty, Loadable, useResource } from '../components/loadable.tsx';
import { announce } from '../state/announcement.ts';
import { type KeyFilter, keyFilters, keyFilterWords, matching, pageOf } from '../state/key-list.ts';
import { opened } from '../state/route.ts';
import { minute } from '../state/times.ts';
import { number, plural } from '../state/words.ts';
import { ApiKeyTable, focusRow } from './api-key-table.tsx';
import { CreateApiKey } from './create-api-key.tsx';
import { RevokeApiKey } from './revoke-api-key.tsx';
import { SaveKeyValue, type ShownKey, shownKey } from './save-key-value.tsx';
import { WhichKey } from './which-key.tsx';

/** The home of the console: the keys of the viewer's scope. */
export function ApiKeys({ session }: { session: SessionView }) {
  const resource = useResource(() => window.callkey.listApiKeys());
  const [revoking, setRevoking] = useState<ApiKeyView | null>(null);
  const [highlighted, setHighlighted] = useState<Highlight | null>(null);
  const [saving, setSaving] = useState<ShownKey | null>(null);
  const close = () => {
    opened.value = null;
  };

  function created(view: CreatedApiKeyView): void {
    close();
    setSaving(shownKey(view));
    void resource.refresh();
  }
  function shown(key: ApiKeyView, unsaved: boolean): void {
    setSaving(null);
    setHighlighted({ id: key.id });
    announce(unsaved ? `${key.name} is there, but nobody has its value. Revoke it.` : `${key.name} is ready for use.`);
  }
  function revoked(key: ApiKeyView, nextId: string | null): void {
    setRevoking((now) => (now?.id === key.id ? null : now));
    announce(`${key.name} is revoked. It is refused from now on.`);
    void resource.refresh().then(() => focusRow(nextId));
  }

  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>API keys</h1>
        <button type="button" onClick={() => open('which-key')}>
          Which key is this?
        </button>
        <button type="button" class="primary" onClick={() => open('create-key')}>
          <Icon name="plus" /> Create API Key
        </button>
      </div>
      <Loadable resource={resource} what="your API keys">
        {(view) => <KeyList view={view} highlighted={highlighted} onRevoke={setRevoking} />}
      </Loadable>
      {opened.value === 'create-key' && (
        <CreateApiKey session={session} onCreated={created} onUncertain={() => void resource.refresh()} onClose={close} />
      )}
      {opened.value === 'which-key' && (
        <WhichKey
          onFound={(key) => {
            close();
            setHighlighted({ id: key.id });
          }}
          onRevoke={(key) => {
            close();
            setRevoking(key);
          }}
          isListed={(id) => resource.state.peek().value?.apiKeys.some((key) => key.id === id) === true}
          onClose={close}
        />
      )}
      {saving && <SaveKeyValue shown={saving} onClose={(unsaved) => shown(saving.apiKey, unsaved)} />}
      {revoking && (
        <RevokeApiKey
          apiKey={revoking}
          onRevoked={(nextId) => revoked(revoking, nextId)}
          onClose={() => setRevoking(null)}
          onGone={() => {
            setRevoking(null);
            void resource.refresh();
          }}
        />
      )}
    </>
  );
}

function open(what: 'create-key' | 'which-key'): void {
  opened.value = what;
}

/** A key to be brought into sight: each one anew, the same key, too. */
type Highlight = { id: string };

type KeyListProps = { view: ApiKeysView; highlighted: Highlight | null; onRevoke: (key: ApiKeyView) => void };

function KeyList({ view, highlighted, onRevoke }: KeyListProps) {
  const [search, setSearch] = useState('');
  const [filter, setFilter] = useState<KeyFilter>('all');
  const [size, setSize] = useState<number>(limits.pageSizes[1]);
  const [wanted, setWanted] = useState(0);
  const found = matching(view.apiKeys, search, filter, minute.value);
  const page = pageOf(found, wanted, size);

  // What is highlighted is brought into sight, whatever hid it.
  const before = useRef<Highlight | null>(null);
  useEffect(() => {
    if (highlighted === before.current || highlighted === null) return;
    const index = view.apiKeys.findIndex((key) => key.id === highlighted.id);
    if (index < 0) return;
    before.current = highlighted;
    setSearch('');
    setFilter('all');
    setWanted(Math.floor(index / size));
    focusRow(highlighted.id);
  }, [highlighted, view.apiKeys, size]);

  if (view.total === 0) {
    return (
      <Empty title="No API keys yet">
        <p>With a key, a system of yours can place and cancel calls without anybody signing in.</p>
      </Empty>
    );
  }
  return (
    <>
      <search class="toolbar">
        <label class="grow">
          <span class="visually-hidden">Search by name</span>
          <input
            type="search"
            placeholder="Search by name"
            value={search}
            onInput={({ currentTarget }) => {
              setSearch(currentTarget.value);
              setWanted(0);
            }}
          />
        </label>
        <label>
          <span class="visually-hidden">Show</span>
          <select
            value={filter}
            onChange={({ currentTarget }) => {
              setFilter(keyFilters.find((name) => name === currentTarget.value) ?? 'all');
              setWanted(0);
            }}
          >
            {keyFilters.map((name) => (
              <option key={name} value={name}>
                {keyFilterWords[name]}
              </option>
            ))}
          </select>
        </label>
      </search>
      {view.total > view.apiKeys.length && (
        <p class="notice">
          Newest {number(view.apiKeys.length)} of {number(view.total)}. Older keys are not listed, but they work: find one with “Which key
          is this?”
        </p>
      )}
      {found.length === 0 ? (
        <Empty title="No API key matches">
          <p>Search and filter look at the keys that are listed.</p>
          <button
            type="button"
            onClick={() => {
              setSearch('');
              setFilter('all');
            }}
          >
            Show all keys
          </button>
        </Empty>
      ) : (
        <ApiKeyTable apiKeys={page.items} highlighted={highlighted?.id ?? null} onRevoke={onRevoke} />
      )}
      <div class="pager">
        <p role="status">
          {found.length === 0 ? 'No keys' : `${number(page.first)}–${number(page.last)} of ${plural(found.length, 'key')}`}
        </p>
        <label>
          Rows{' '}
          <select
            value={String(size)}
            onChange={({ currentTarget }) => {
              const rows = Number(currentTarget.value);
              setSize(rows);
              setWanted(Math.floor((page.first - 1) / rows));
            }}
          >
            {limits.pageSizes.map((rows) => (
              <option key={rows} value={String(rows)}>
                {rows}
              </option>
            ))}
          </select>
        </label>
        <button type="button" aria-label="Previous page" aria-disabled={page.index === 0} onClick={() => setWanted(page.index - 1)}>
          <Icon name="back" />
        </button>
        <span>
          Page {number(page.index + 1)} of {number(page.count)}
        </span>
        <button
          type="button"
          aria-label="Next page"
          aria-disabled={page.index === page.count - 1}
          onClick={() => setWanted(page.index + 1)}
        >
          <Icon name="forward" />
        </button>
      </div>
    </>
  );
}
