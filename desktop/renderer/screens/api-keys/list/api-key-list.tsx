import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView } from '#contract/console/api-keys.ts';
import { Empty } from '../../../components/loadable.tsx';
import { Clip } from '../../../components/table/clip.tsx';
import { focusRow } from '../../../components/table/table-focus.ts';
import type { Selection } from '../../../components/table/table-model.ts';
import { formatExpiryDay } from '../../../components/time.tsx';
import { now } from '../../../state/clock.ts';
import { formatNumber } from '../../../state/format/format.ts';
import { sortAfterPress } from '../../../state/format/sorting.ts';
import { isPrinting } from '../../../state/printing.ts';
import { ApiKeyTable } from './api-key-table.tsx';
import { keysExpiringSoon, listOwners, paginate } from './key-list.ts';
import { type KeyListView, keyListView, keysInView } from './key-list-view.ts';
import { KeyToolbar } from './key-toolbar.tsx';

/** A request to scroll to a key. A new object is a new request, even for the same key. */
type Highlight = { id: string };

type ApiKeyListProps = {
  view: ApiKeysView;
  /** The matching keys in the order that the user chose. */
  matches: readonly ApiKeyView[];
  settings: KeyListView;
  onChange: (changes: Partial<KeyListView>) => void;
  highlighted: Highlight | null;
  openId: string;
  selection: Selection;
  onOpen: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
};

/** Shows a page of the matching keys. */
export function ApiKeyList(props: ApiKeyListProps) {
  const { view, matches, settings, onChange, highlighted, openId, selection, onOpen, onRevoke } = props;
  const { sort, size } = settings;
  const owners = useMemo(() => listOwners(view.apiKeys), [view.apiKeys]);
  const page = isPrinting.value ? { items: matches } : paginate(matches, settings.page, size);

  // Clears the search and the filters and changes the page, because they may be hiding the highlighted key.
  const before = useRef<Highlight | null>(null);
  useEffect(() => {
    if (highlighted === before.current || highlighted === null) return;
    const everything = { ...settings, search: '', filter: 'all', owner: '' } as const;
    const index = keysInView(view.apiKeys, everything, now.peek()).findIndex((key) => key.id === highlighted.id);
    if (index < 0) return;
    before.current = highlighted;
    onChange({ search: '', filter: 'all', owner: '', page: Math.floor(index / size) });
    focusRow(highlighted.id);
  }, [highlighted, view.apiKeys, size]);

  if (matches.length === 0) {
    return (
      <Empty title="No matching API keys">
        <p>Search and filters apply only to the keys in this list.</p>
        <button type="button" onClick={() => onChange({ search: '', filter: 'all', owner: '', page: 0 })}>
          Show all keys
        </button>
      </Empty>
    );
  }
  return (
    <ApiKeyTable
      apiKeys={page.items}
      owners={owners}
      highlighted={highlighted?.id ?? null}
      openId={openId}
      sort={sort}
      selection={selection}
      onSort={(column) => onChange({ sort: sortAfterPress(sort, column, column === 'created' || column === 'used'), page: 0 })}
      onOpen={onOpen}
      onRevoke={onRevoke}
    />
  );
}

type ApiKeyHeadProps = {
  view: ApiKeysView;
  settings: KeyListView;
  onChange: (changes: Partial<KeyListView>) => void;
};

/** Shows search and filters, the expiration banner, and how many keys aren't listed. */
export function ApiKeyHead({ view, settings, onChange }: ApiKeyHeadProps) {
  const { size } = settings;
  return (
    <>
      <ExpiringSoonBanner
        keys={view.apiKeys}
        isShown={settings.filter === 'expiring'}
        onShow={() => onChange({ ...keyListView.initial, filter: 'expiring', size })}
      />
      <KeyToolbar keys={view.apiKeys} settings={settings} onChange={(changes) => onChange({ ...changes, page: 0 })} />
      {view.total > view.apiKeys.length && (
        <p class="notice">
          Newest {formatNumber(view.apiKeys.length)} of {formatNumber(view.total)} keys. Search and filters apply only to these. Your
          server’s operator can list them all with <code>callkey-admin key list --all</code>.
        </p>
      )}
    </>
  );
}

function ExpiringSoonBanner({ keys, isShown, onShow }: { keys: readonly ApiKeyView[]; isShown: boolean; onShow: () => void }) {
  const expiringSoon = keysExpiringSoon(keys, now.value);
  const [first] = expiringSoon;
  if (!first || first.expiresAt === null || isShown) return null;
  return (
    <div class="banner">
      <p>
        {expiringSoon.length === 1 ? 'One key expires' : `${formatNumber(expiringSoon.length)} keys expire`} within 30 days
        {expiringSoon.length === 1 ? ': ' : '. First to expire: '}
        <strong>
          <Clip>{first.name}</Clip>
        </strong>
        , on {formatExpiryDay(first.expiresAt, first.expiryTimeZone)}.
      </p>
      <button type="button" class="link" onClick={onShow}>
        Show {expiringSoon.length === 1 ? 'it' : 'them'}
      </button>
    </div>
  );
}
