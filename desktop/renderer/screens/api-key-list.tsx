import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { Icon } from '../components/icons.tsx';
import { Empty } from '../components/loadable.tsx';
import { focusRow } from '../components/table-focus.ts';
import type { Selection } from '../components/table-model.ts';
import { endOf } from '../components/time.tsx';
import { now } from '../state/clock.ts';
import { formatNumber, pluralize } from '../state/format.ts';
import { formatDay } from '../state/format-time.ts';
import {
  filterKeys,
  type KeyColumn,
  type KeyFilter,
  keyFilterLabels,
  keyFilters,
  keySortValues,
  keysEndingSoon,
  ownersOf,
  pageOf,
} from '../state/key-list.ts';
import { scrollToTop } from '../state/navigation.ts';
import { type Sort, sortAfterPress, sorted } from '../state/sorting.ts';
import { ApiKeyTable } from './api-key-table.tsx';

/** A request to scroll to a key. A new object requests it again, even for the same key. */
type Highlight = { id: string };

/** What the user set on this screen. */
type KeyListView = { search: string; filter: KeyFilter; owner: string; sort: Sort<KeyColumn>; size: number; page: number };

export const initialKeyListView: KeyListView = {
  search: '',
  filter: 'all',
  owner: '',
  sort: { column: 'created', isDescending: true },
  size: limits.pageSizes[1],
  page: 0,
};

/** The keys that match, in the order that the user chose. */
export function keysInView(keys: readonly ApiKeyView[], { search, filter, owner, sort }: KeyListView): ApiKeyView[] {
  const found = filterKeys(keys, search, filter, now.value, owner);
  // As the core sends them: those of one instant have an order, too.
  if (sort.column === 'created') return sort.isDescending ? found : found.toReversed();
  return sorted(found, keySortValues[sort.column], sort.isDescending);
}

type ApiKeyListProps = {
  /** What can be done with the selected keys. */
  bulk: ComponentChildren;
  view: ApiKeysView;
  settings: KeyListView;
  onChange: (changes: Partial<KeyListView>) => void;
  highlighted: Highlight | null;
  openId: string | null;
  selection: Selection;
  onOpen: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
};

/** The keys, with search, filters and pages. */
export function ApiKeyList({ bulk, view, settings, onChange, highlighted, openId, selection, onOpen, onRevoke }: ApiKeyListProps) {
  const { sort, size } = settings;
  const found = keysInView(view.apiKeys, settings);
  const page = pageOf(found, settings.page, size);

  // Search, filter or page may hide the highlighted key.
  const before = useRef<Highlight | null>(null);
  useEffect(() => {
    if (highlighted === before.current || highlighted === null) return;
    const everything = { ...settings, search: '', filter: 'all', owner: '' } as const;
    const index = keysInView(view.apiKeys, everything).findIndex((key) => key.id === highlighted.id);
    if (index < 0) return;
    before.current = highlighted;
    onChange({ search: '', filter: 'all', owner: '', page: Math.floor(index / size) });
    focusRow(highlighted.id);
  }, [highlighted, view.apiKeys, size]);

  return (
    <>
      <EndingSoon
        keys={view.apiKeys}
        filter={settings.filter}
        onShow={() => onChange({ ...initialKeyListView, filter: 'expiring', size })}
      />
      <Toolbar keys={view.apiKeys} settings={settings} onChange={(changes) => onChange({ ...changes, page: 0 })} />
      {bulk}
      {view.total > view.apiKeys.length && (
        <p class="notice">
          Newest {formatNumber(view.apiKeys.length)} of {formatNumber(view.total)}. Older keys are not listed, but they still work. Find one
          with “Which key is this?”
        </p>
      )}
      {found.length === 0 ? (
        <Empty title="No API key matches">
          <p>Search and filters cover the keys in this list.</p>
          <button type="button" onClick={() => onChange({ search: '', filter: 'all', owner: '', page: 0 })}>
            Show all keys
          </button>
        </Empty>
      ) : (
        <ApiKeyTable
          apiKeys={page.items}
          highlighted={highlighted?.id ?? null}
          openId={openId}
          sort={sort}
          selection={selection}
          onSort={(column) => onChange({ sort: sortAfterPress(sort, column, column === 'created' || column === 'used'), page: 0 })}
          onOpen={onOpen}
          onRevoke={onRevoke}
        />
      )}
    </>
  );
}

function EndingSoon({ keys, filter, onShow }: { keys: readonly ApiKeyView[]; filter: KeyFilter; onShow: () => void }) {
  const soon = keysEndingSoon(keys, now.value);
  const [first] = soon;
  if (!first || first.expiresAt === null || filter === 'expiring') return null;
  const day = formatDay(endOf(first.expiresAt, first.expiryTimeZone));
  return (
    <div class="banner">
      <p>
        {soon.length === 1 ? 'One key ends' : `${formatNumber(soon.length)} keys end`} within 30 days
        {soon.length === 1 ? ': ' : '. The first: '}
        <strong>{first.name}</strong>, on {day}.
      </p>
      <button type="button" class="link" onClick={onShow}>
        Show {soon.length === 1 ? 'it' : 'them'}
      </button>
    </div>
  );
}

type ToolbarProps = { keys: readonly ApiKeyView[]; settings: KeyListView; onChange: (changes: Partial<KeyListView>) => void };

function Toolbar({ keys, settings: { search, filter, owner }, onChange }: ToolbarProps) {
  const owners = ownersOf(keys);
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search by name</span>
        <input
          type="search"
          placeholder="Search by name"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
      {owners.length > 1 && (
        <label>
          <span class="visually-hidden">Owner</span>
          <select value={owner} onChange={({ currentTarget }) => onChange({ owner: currentTarget.value })}>
            <option value="">Every owner</option>
            {owners.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons. */}
      <div class="chips" role="group" aria-label="Show">
        {keyFilters.map((name) => {
          const count = filterKeys(keys, '', name, now.value).length;
          if (count === 0 && name !== 'all' && name !== filter) return null;
          return (
            <button key={name} type="button" aria-pressed={name === filter} onClick={() => onChange({ filter: name })}>
              {keyFilterLabels[name]} {formatNumber(count)}
            </button>
          );
        })}
      </div>
    </search>
  );
}

/** Where the page is, its rows, and the way to the next one. */
export function KeyPager({ keys, settings, onChange }: ToolbarProps) {
  const { size } = settings;
  const found = keysInView(keys, settings);
  const page = pageOf(found, settings.page, size);
  const go = (index: number) => {
    onChange({ page: index });
    scrollToTop();
  };
  return (
    <>
      <span role="status">
        {found.length === 0 ? 'No keys' : `${formatNumber(page.first)}–${formatNumber(page.last)} of ${pluralize(found.length, 'key')}`}
      </span>
      <span class="end">
        <label>
          Rows{' '}
          <select
            value={String(size)}
            onChange={({ currentTarget }) => {
              const rows = Number(currentTarget.value);
              onChange({ size: rows, page: Math.floor(Math.max(0, page.first - 1) / rows) });
            }}
          >
            {limits.pageSizes.map((rows) => (
              <option key={rows} value={String(rows)}>
                {rows}
              </option>
            ))}
          </select>
        </label>
        <PageButton label="Previous page" icon="back" isPossible={page.index > 0} onPress={() => go(page.index - 1)} />
        <span>
          Page {formatNumber(page.index + 1)} of {formatNumber(page.count)}
        </span>
        <PageButton label="Next page" icon="forward" isPossible={page.index < page.count - 1} onPress={() => go(page.index + 1)} />
      </span>
    </>
  );
}

type PageButtonProps = { label: string; icon: 'back' | 'forward'; isPossible: boolean; onPress: () => void };

function PageButton({ label, icon, isPossible, onPress }: PageButtonProps) {
  return (
    <button type="button" class="icon-only" aria-label={label} aria-disabled={!isPossible} onClick={() => isPossible && onPress()}>
      <Icon name={icon} />
    </button>
  );
}
