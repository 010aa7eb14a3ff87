import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { Icon } from '../components/icons.tsx';
import { Empty } from '../components/loadable.tsx';
import { minute } from '../state/clock.ts';
import { formatNumber, pluralize } from '../state/format.ts';
import { filterKeys, type KeyFilter, keyFilterLabels, keyFilters, type Page, pageOf } from '../state/key-list.ts';
import { ApiKeyTable, focusRow } from './api-key-table.tsx';

/** A request to scroll to a key. A new object requests it again, even for the same key. */
export type Highlight = { id: string };

type ApiKeyListProps = { view: ApiKeysView; highlighted: Highlight | null; onRevoke: (key: ApiKeyView) => void };

/** The keys, with search, filter and pages. */
export function ApiKeyList({ view, highlighted, onRevoke }: ApiKeyListProps) {
  const [search, setSearch] = useState('');
  const [filter, setFilter] = useState<KeyFilter>('all');
  const [size, setSize] = useState<number>(limits.pageSizes[1]);
  const [wanted, setWanted] = useState(0);
  const found = filterKeys(view.apiKeys, search, filter, minute.value);
  const page = pageOf(found, wanted, size);

  // Search, filter or page may hide the highlighted key.
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
        <p>With an API key, your own systems can place and cancel calls without a user signing in.</p>
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
                {keyFilterLabels[name]}
              </option>
            ))}
          </select>
        </label>
      </search>
      {view.total > view.apiKeys.length && (
        <p class="notice">
          Newest {formatNumber(view.apiKeys.length)} of {formatNumber(view.total)}. Older keys are not listed, but they still work. Find one
          with “Which key is this?”
        </p>
      )}
      {found.length === 0 ? (
        <Empty title="No API key matches">
          <p>Search and filter cover only the keys in this list.</p>
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
      <Pager
        page={page}
        found={found.length}
        size={size}
        onGo={setWanted}
        onResize={(rows) => {
          setSize(rows);
          setWanted(Math.floor((page.first - 1) / rows));
        }}
      />
    </>
  );
}

type PagerProps = {
  page: Page<ApiKeyView>;
  found: number;
  size: number;
  onGo: (index: number) => void;
  onResize: (rows: number) => void;
};

function Pager({ page, found, size, onGo, onResize }: PagerProps) {
  return (
    <div class="pager">
      <p role="status">
        {found === 0 ? 'No keys' : `${formatNumber(page.first)}–${formatNumber(page.last)} of ${pluralize(found, 'key')}`}
      </p>
      <label>
        Rows{' '}
        <select value={String(size)} onChange={({ currentTarget }) => onResize(Number(currentTarget.value))}>
          {limits.pageSizes.map((rows) => (
            <option key={rows} value={String(rows)}>
              {rows}
            </option>
          ))}
        </select>
      </label>
      <button type="button" aria-label="Previous page" aria-disabled={page.index === 0} onClick={() => onGo(page.index - 1)}>
        <Icon name="back" />
      </button>
      <span>
        Page {formatNumber(page.index + 1)} of {formatNumber(page.count)}
      </span>
      <button type="button" aria-label="Next page" aria-disabled={page.index === page.count - 1} onClick={() => onGo(page.index + 1)}>
        <Icon name="forward" />
      </button>
    </div>
  );
}
