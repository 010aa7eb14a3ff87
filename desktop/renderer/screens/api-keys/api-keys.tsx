import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView, RevokedApiKeysView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { Expiry, LimitedBadge, OwnerTag, ReferenceLink, RefusedBadge } from '../../components/api-key.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ExportButton } from '../../components/export-buttons.tsx';
import { Field, FormError, useAction } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, Loadable, useFreshResource, useView } from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { adjacentRowId, Clip, type Column, DataTable, focusRow, isPrinting, type Selection } from '../../components/table.tsx';
import { Day, formatExpiryDay } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { announce, warn } from '../../state/announcement.ts';
import {
  exampleCall,
  filterKeys,
  getOwnerId,
  hasExpired,
  type KeyColumn,
  type KeyListView,
  keyCsvHead,
  keyCsvRow,
  keyFilterLabels,
  keyFilters,
  keyListView,
  keysExpiringSoon,
  keysInView,
  keysWithSameName,
  listOwners,
  paginate,
  summarizeLimits,
} from '../../state/api-keys.ts';
import { now } from '../../state/clock.ts';
import { fieldError, generalError } from '../../state/failure-text.ts';
import { formatNumber, pluralize, type Sort, sortAfterPress } from '../../state/format.ts';
import { openDialog, requestedKey, type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { writePreference } from '../../state/preferences.ts';
import { server } from '../../state/session.ts';
import { ApiKeyDetails, OpenApiKey } from './api-key-details.tsx';
import { CreateApiKey, type NewApiKey, SaveKeyValue, type ShownKey, shownKey } from './create-api-key.tsx';
import { RevokeApiKey, RevokeApiKeys } from './revoke-api-keys.tsx';

/** Shows the keys in the viewer's scope, and the dialogs about them. */
export function ApiKeys({ session, title }: ScreenProps) {
  const resource = useFreshResource('api-keys', () => window.callkey.request('listApiKeys', {}));
  const [settings, change] = useView(keyListView.name, keyListView.initial);
  const [revoking, setRevoking] = useState<ApiKeyView | null>(null);
  const [saving, setSaving] = useState<ShownKey | null>(null);
  const [replaced, setReplaced] = useState<ApiKeyView | null>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isRevokingSelected, setRevokingSelected] = useState(false);
  const close = () => {
    openDialog.value = null;
    setReplaced(null);
  };
  const listed = resource.state.value.value;
  const matches = useMemo(() => keysInView(listed?.apiKeys ?? [], settings, now.value), [listed, settings, now.value]);
  const openId = settings.open;
  const setOpenId = (id: string) => change({ open: id });
  const openKey = listed?.apiKeys.find(({ id }) => id === openId);
  const closeDetails = useCallback(() => {
    setOpenId('');
    focusRow(openId);
  }, [openId]);

  function created(view: NewApiKey): void {
    openDialog.value = null;
    setSaving(shownKey(view));
    void resource.refresh();
  }
  function shown(key: ApiKeyView, unsaved: boolean): void {
    setSaving(null);
    // Shows the old key's details again, which now include both keys.
    if (replaced) setOpenId(replaced.id);
    else requestedKey.value = { id: key.id };
    setReplaced(null);
    if (unsaved) warn(`${key.name} was created, but its value wasn’t saved. Revoke it.`);
    else announce(`${key.name} is ready to use.`);
  }
  function revoked(key: ApiKeyView): void {
    const nextId = adjacentRowId(key.id);
    setRevoking((now) => (now?.id === key.id ? null : now));
    setOpenId('');
    announce(hasExpired(key, now.peek()) ? `${key.name} was revoked.` : `${key.name} was revoked and no longer works.`);
    void resource.refresh().then(() => focusRow(nextId));
  }

  function revokedSelected({ revoked, gone }: RevokedApiKeysView): void {
    setRevokingSelected(false);
    setSelected(new Set());
    setOpenId('');
    const others = gone.length === 0 ? '' : ` ${pluralize(gone.length, 'other was', 'others were')} already gone.`;
    announce(`${pluralize(revoked.length, 'key was', 'keys were')} revoked.${others}`);
    void resource.refresh().then(() => focusRow(null));
  }

  // Includes only keys that are still shown: another administrator may have revoked some, and others may no longer match the filter.
  const selectedKeys = matches.filter(({ id }) => selected.has(id));
  /** Changes the filters, and deselects and closes the keys that they hide. Otherwise, those keys could be revoked by mistake. */
  function narrow(changes: Partial<KeyListView>): void {
    const { search, filter, owner } = { ...settings, ...changes };
    const visible = new Set(filterKeys(listed?.apiKeys ?? [], search, filter, now.peek(), owner).map(({ id }) => id));
    change(openKey && !visible.has(openId) ? { ...changes, open: '' } : changes);
    setSelected(new Set([...selected].filter((id) => visible.has(id))));
  }
  const isEmpty = listed?.total === 0;
  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {listed && !isEmpty && (
              <ExportButton name="api-keys" head={keyCsvHead} rows={() => matches.map((key) => keyCsvRow(key, now.peek()))} />
            )}
            <button type="button" onClick={() => open('which-key')}>
              Which key is this?
            </button>
            <button type="button" class="primary" onClick={() => open('create-key')}>
              <Icon name="plus" /> Create API key
            </button>
          </>
        }
        head={listed && !isEmpty && <ApiKeyHead view={listed} settings={settings} onChange={narrow} />}
        details={
          listed &&
          openId !== '' && (
            <OpenApiKey key={openId} id={openId} listed={openKey} onClose={closeDetails}>
              {(apiKey) => (
                <ApiKeyDetails
                  apiKey={apiKey}
                  sameNamed={keysWithSameName(listed.apiKeys, apiKey)}
                  onReplace={() => {
                    setReplaced(apiKey);
                    open('create-key');
                  }}
                  onLimited={({ name, ...limits }) => {
                    const summary = summarizeLimits(limits);
                    announce(summary === '' ? `${name} no longer has limits.` : `${name} is now limited: ${summary}.`);
                    void resource.refresh();
                  }}
                  onRevoke={() => setRevoking(apiKey)}
                  onClose={closeDetails}
                />
              )}
            </OpenApiKey>
          )
        }
        resource={resource}
        foot={
          listed &&
          !isEmpty && (
            <>
              <KeyPager matches={matches} settings={settings} onChange={change} />
              {selectedKeys.length > 0 && (
                <SelectionBar
                  count={selectedKeys.length}
                  onRevoke={() => {
                    const [first, ...others] = selectedKeys;
                    if (first && others.length === 0) setRevoking(first);
                    else setRevokingSelected(true);
                  }}
                  onClear={() => setSelected(new Set())}
                />
              )}
            </>
          )
        }
      >
        <Loadable resource={resource} noun="your API keys" isInPage>
          {(view) =>
            view.total === 0 ? (
              <FirstKey onCreate={() => open('create-key')} />
            ) : (
              <ApiKeyList
                view={view}
                matches={matches}
                settings={settings}
                onChange={narrow}
                highlighted={requestedKey.value}
                openId={openId}
                selection={{ ids: selected, onChange: setSelected }}
                onOpen={({ id }) => setOpenId(id)}
                onRevoke={setRevoking}
              />
            )
          }
        </Loadable>
      </Page>
      {openDialog.value === 'create-key' && (
        <CreateApiKey
          session={session}
          listed={listed?.apiKeys ?? []}
          replaced={replaced}
          onCreated={created}
          onMaybeCreated={() => void resource.refresh()}
          onClose={close}
        />
      )}
      {openDialog.value === 'which-key' && (
        <WhichKey
          onFound={({ id }) => {
            close();
            requestedKey.value = { id };
            setOpenId(id);
          }}
          onClose={close}
        />
      )}
      {saving && <SaveKeyValue session={session} shown={saving} onClose={(unsaved) => shown(saving.apiKey, unsaved)} />}
      {isRevokingSelected && (
        <RevokeApiKeys apiKeys={selectedKeys} onRevoked={revokedSelected} onClose={() => setRevokingSelected(false)} />
      )}
      {revoking && (
        <RevokeApiKey
          apiKey={revoking}
          replacement={newestAfter(keysWithSameName(listed?.apiKeys ?? [], revoking), revoking)}
          onReplace={() => {
            setRevoking(null);
            setReplaced(revoking);
            open('create-key');
          }}
          onRevoked={() => revoked(revoking)}
          onClose={() => setRevoking(null)}
          onAlreadyRevoked={() => {
            setRevoking(null);
            void resource.refresh();
          }}
        />
      )}
    </>
  );
}

/** Returns the newest key that was created after another one. */
function newestAfter(keys: readonly ApiKeyView[], older: ApiKeyView): ApiKeyView | null {
  const newer = keys.filter(({ createdAt }) => Date.parse(createdAt) > Date.parse(older.createdAt));
  return newer.toSorted((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))[0] ?? null;
}

function open(what: 'create-key' | 'which-key'): void {
  openDialog.value = what;
}

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
function ApiKeyList(props: ApiKeyListProps) {
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
function ApiKeyHead({ view, settings, onChange }: ApiKeyHeadProps) {
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

type KeyToolbarProps = { keys: readonly ApiKeyView[]; settings: KeyListView; onChange: (changes: Partial<KeyListView>) => void };

/** Shows the search, the owner and the filters. */
function KeyToolbar({ keys, settings: { search, filter, owner }, onChange }: KeyToolbarProps) {
  const owners = useMemo(() => listOwners(keys), [keys]);
  const counts = useMemo(
    () => keyFilters.map((name) => ({ name, count: filterKeys(keys, '', name, now.value, owner).length })),
    [keys, now.value, owner],
  );
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
      {owners.size > 1 && (
        <label>
          <span class="visually-hidden">Owner</span>
          <select value={owner} onChange={({ currentTarget }) => onChange({ owner: currentTarget.value })}>
            <option value="">All owners</option>
            {[...owners].map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons. */}
      <div class="chips" role="group" aria-label="Show">
        {counts.map(({ name, count }) => {
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

type ApiKeyTableProps = {
  apiKeys: readonly ApiKeyView[];
  /** The owners' names by owner ID. */
  owners: ReadonlyMap<string, string>;
  highlighted: string | null;
  openId: string;
  sort: Sort<KeyColumn>;
  selection: Selection;
  onSort: (column: KeyColumn) => void;
  onOpen: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
};

type KeyTableColumn = Column<ApiKeyView, KeyColumn>;

type Owners = ReadonlyMap<string, string>;

/** If the page is too narrow for the owner column, the owner is shown under the name. */
const nameColumn = (owners: Owners): KeyTableColumn => ({
  name: 'name',
  label: 'Name',
  width: 'name',
  cell: (key) => (
    <>
      <span class="line">
        <Clip>{key.name}</Clip>
        <RefusedBadge apiKey={key} isInTable />
        <LimitedBadge apiKey={key} />
      </span>
      {key.owner && (
        <span class="second-line">
          <Clip>{owners.get(getOwnerId(key))}</Clip>
        </span>
      )}
    </>
  ),
});

const ownerColumn = (owners: Owners): KeyTableColumn => ({
  name: 'owner',
  label: 'Owner',
  width: 'text',
  needs: 'medium',
  cell: (key) => key.owner && (key.owner.isYou ? <OwnerTag owner={key.owner} /> : <Clip>{owners.get(getOwnerId(key))}</Clip>),
});

const dateColumns: readonly KeyTableColumn[] = [
  {
    name: 'created',
    label: 'Created',
    width: 'day',
    cell: ({ createdAt }) => <Day at={createdAt} />,
  },
  {
    name: 'used',
    label: 'Last used',
    width: 'day',
    cell: ({ lastUsedAt }) => (lastUsedAt === null ? <span class="faint">Never</span> : <Day at={lastUsedAt} />),
  },
  { name: 'expiry', label: 'Expiry', width: 'end', cell: (key) => <Expiry apiKey={key} isInTable /> },
];

function ApiKeyTable({ apiKeys, owners, highlighted, openId, sort, selection, onSort, onOpen, onRevoke }: ApiKeyTableProps) {
  // The core sends owners only to viewers who can see other users' keys.
  const columns = useMemo(() => [nameColumn(owners), ...(owners.size > 0 ? [ownerColumn(owners)] : []), ...dateColumns], [owners]);
  return (
    <DataTable
      label="API keys"
      columns={columns}
      rows={apiKeys}
      getId={({ id }) => id}
      getName={({ name }) => name}
      getClass={(key) => `${hasExpired(key, now.value) || key.ownerDisabled ? 'dim' : ''} ${key.id === highlighted ? 'highlighted' : ''}`}
      sort={sort}
      onSort={onSort}
      onOpen={onOpen}
      openId={openId}
      getHref={({ id }) => formatAddress('api-keys', { open: id })}
      selection={selection}
      action={{ icon: 'trash', label: ({ name }) => `Revoke ${name}`, run: onRevoke }}
    />
  );
}

type KeyPagerProps = Omit<KeyToolbarProps, 'keys'> & { matches: readonly ApiKeyView[] };

/** Shows the position of the page, its number of rows, and the buttons to other pages. */
function KeyPager({ matches, settings, onChange }: KeyPagerProps) {
  const { size } = settings;
  const page = paginate(matches, settings.page, size);
  const go = (index: number) => {
    onChange({ page: index });
    scrollToTop();
  };
  return (
    <>
      <span role="status">
        {page.count > 1 && `${formatNumber(page.first)}–${formatNumber(page.last)} of `}
        {matches.length === 0 ? 'No keys' : pluralize(matches.length, 'key')}
      </span>
      <span class="end">
        <label>
          Rows per page{' '}
          <select
            value={String(size)}
            onChange={({ currentTarget }) => {
              const rows = Number(currentTarget.value);
              writePreference('rows', String(rows));
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

type SelectionBarProps = { count: number; onRevoke: () => void; onClear: () => void };

/** Shows the actions for the selected keys. */
function SelectionBar({ count, onRevoke, onClear }: SelectionBarProps) {
  return (
    <div class="selection">
      <span role="status">{pluralize(count, 'key')} selected</span>
      <span class="actions">
        <button type="button" class="quiet" onClick={onClear}>
          Clear
        </button>
        <button type="button" class="warns" onClick={onRevoke}>
          Revoke {pluralize(count, 'key')}…
        </button>
      </span>
    </div>
  );
}

/** Explains API keys to users who don't have one yet. */
function FirstKey({ onCreate }: { onCreate: () => void }) {
  return (
    <Empty title="No API keys yet">
      <p>With an API key, your systems can place and cancel calls without anyone signing in. Each call is one request:</p>
      <pre>{exampleCall(server.value, '{campaignId}', 'order-4711')}</pre>
      <p>
        <ReferenceLink verb="lists errors and limits, and has examples in eight languages." />
      </p>
      <button type="button" class="primary" onClick={onCreate}>
        <Icon name="plus" /> Create your first key
      </button>
    </Empty>
  );
}

type WhichKeyProps = { onFound: (key: ApiKeyView) => void; onClose: () => void };

/** Finds the key that a value belongs to. The value is hashed on this computer and never leaves it. */
function WhichKey({ onFound, onClose }: WhichKeyProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isUnknown, setUnknown] = useState(false);
  const { isBusy, failure, form, run } = useAction();

  function submit(event: Event): void {
    event.preventDefault();
    const pasted = input.current?.value ?? '';
    setUnknown(false);
    void run(
      () => window.callkey.identifyApiKey(pasted),
      (apiKey) => {
        if (input.current) input.current.value = '';
        if (apiKey) onFound(apiKey);
        else setUnknown(true);
      },
    );
  }

  return (
    <Dialog title="Which key is this?" onDismiss={onClose}>
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Key value"
          error={fieldError(failure, 'keyValue')}
          hint="Paste a key value you found, or the line it’s in. It stays on this computer: only its hash is sent to the server."
        >
          {(binding) => <input {...binding} ref={input} type="password" autocomplete="off" spellcheck={false} data-autofocus />}
        </Field>
        <FormError text={generalError(failure, ['keyValue'])} />
        <div role="status">
          {isUnknown && (
            <p class="notice">
              None of the keys you can see has this value. The key may have been revoked, belong to someone else, or come from another
              server.
            </p>
          )}
        </div>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy}>
            Find key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
