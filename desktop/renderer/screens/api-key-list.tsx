import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { Icon } from '../components/icons.tsx';
import { Empty } from '../components/loadable.tsx';
import { type KeyFilter, keyFilters, keyFilterWords, matching, type Page, pageOf } from '../state/key-list.ts';
import { minute } from '../state/times.ts';
import { number, plural } from '../state/words.ts';
import { ApiKeyTable, focusRow } from './api-key-table.tsx';

/** A key to be brought into sight: each one anew, the same key, too. */
export type Highlight = { id: string };

type ApiKeyListProps = { view: ApiKeysView; highlighted: Highlight | null; onRevoke: (key: ApiKeyView) => void };

/** The keys by search and filter, page by page. */
export function ApiKeyList({ view, highlighted, onRevoke }: ApiKeyListProps) {
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
      <p role="status">{found === 0 ? 'No keys' : `${number(page.first)}–${number(page.last)} of ${plural(found, 'key')}`}</p>
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
        Page {number(page.index + 1)} of {number(page.count)}
      </span>
      <button type="button" aria-label="Next page" aria-disabled={page.index === page.count - 1} onClick={() => onGo(page.index + 1)}>
        <Icon name="forward" />
      </button>
    </div>
  );
}
