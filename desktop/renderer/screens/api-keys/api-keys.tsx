import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ApiKeysView, ApiKeyView, RevokedApiKeysView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { Expiry, LimitedBadge, OwnerTag, ReferenceLink, RefusedBadge } from '../../components/api-key.tsx';
import { useCampaigns } from '../../components/choose.tsx';
import { ExportRowsButton } from '../../components/export-buttons.tsx';
import { Field, FilterSelect, FormDialog, SearchInput } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, useDialogs, useFilters, useList, useOpen } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { Rare } from '../../components/popovers.tsx';
import { adjacentRowId, Clip, type Column, DataTable, focusRow, isPrinting, SelectionBar } from '../../components/table.tsx';
import { Day, toExpiry } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { announce, warn } from '../../state/announcement.ts';
import {
  exampleCall,
  filterKeys,
  getOwnerId,
  hasExpired,
  type KeyColumn,
  keyCsvHead,
  keyCsvRow,
  keyFilterLabels,
  keyFilters,
  keysExpiringSoon,
  keysInView,
  keysWithSameName,
  labelKey,
  labelKeys,
  listOwners,
  newestAfter,
  paginate,
  sharedNames,
  shortId,
  summarizeLimits,
} from '../../state/api-keys.ts';
import { now, ownZone } from '../../state/clock.ts';
import { defineFilters, oneOf, oneOfNumbers, pageNumber, sortBy, text } from '../../state/filters.ts';
import { formatDay, sortAfterPress } from '../../state/format.ts';
import { mapped } from '../../state/list.ts';
import { openDialog, requestedKey, type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { readPreference, writePreference } from '../../state/remembered.ts';
import { server } from '../../state/session.ts';
import { ApiKeyDetails, EndedApiKey } from './api-key-details.tsx';
import { CreateApiKey, type NewApiKey, SaveKeyValue } from './create-api-key.tsx';
import { RevokeApiKey, RevokeApiKeys } from './revoke-api-keys.tsx';

const rows = limits.pageSizes.find((size) => String(size) === readPreference('rows')) ?? limits.pageSizes[1];

const screenFilters = defineFilters('api-keys', ['open'], {
  open: text(),
  search: text(),
  filter: oneOf(keyFilters, 'all'),
  owner: text(),
  sort: sortBy<KeyColumn>(['name', 'owner', 'created', 'used', 'expiry'], { column: 'created', isDescending: true }),
  size: oneOfNumbers(limits.pageSizes, rows),
  page: pageNumber(),
});
type KeyFilters = typeof screenFilters.initial;
const everything = { search: '', filter: 'all', owner: '', page: 0 } as const;

/** @property replaced the key that the new one replaces */
type KeyDialog =
  | { name: 'create'; replaced: ApiKeyView | null }
  | { name: 'save'; created: NewApiKey; replaced: ApiKeyView | null }
  | { name: 'which' }
  | { name: 'revoke'; apiKey: ApiKeyView }
  | { name: 'revoke-selected' };

export function ApiKeys({ session, title }: ScreenProps) {
  const list = useList({ key: 'api-keys', load: () => window.callkey.request('listApiKeys', {}) });
  const [filters, change] = useFilters(screenFilters);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { dialog, open, close, done } = useDialogs<KeyDialog>(list);
  const { view } = list.state.value;
  const keys = view?.apiKeys ?? [];
  const matches = useMemo(() => keysInView(keys, filters, now.value), [view, filters, now.value]);
  const opened = useOpen(view?.apiKeys, filters.open, (id) =>
    mapped(window.callkey.request('showApiKey', { id, timeZone: ownZone.peek() }), ({ apiKey }) => apiKey),
  );
  const closeDetails = () => change({ open: '' });
  // Includes only keys that are still shown: another administrator may have revoked some, and others may no longer match the filter.
  const selectedKeys = matches.filter(({ id }) => selected.has(id));
  const isEmpty = view?.total === 0;

  // The menu and the palette open these dialogs, too.
  useLayoutEffect(() => {
    if (openDialog.value === 'create-key') open({ name: 'create', replaced: null });
    else if (openDialog.value === 'which-key') open({ name: 'which' });
    else return;
    openDialog.value = null;
  }, [openDialog.value]);
  useHighlight(view, filters, change);

  /** Changes the filters, and deselects and closes the keys that they hide. Otherwise, those keys could be revoked by mistake. */
  function narrow(changes: Partial<KeyFilters>): void {
    const { search, filter, owner } = { ...filters, ...changes };
    const visible = new Set(filterKeys(keys, search, filter, now.peek(), owner).map(({ id }) => id));
    const isHidden = keys.some(({ id }) => id === filters.open) && !visible.has(filters.open);
    change(isHidden ? { ...changes, open: '' } : changes);
    setSelected(new Set([...selected].filter((id) => visible.has(id))));
  }
  function saved({ apiKey }: NewApiKey, replaced: ApiKeyView | null, unsaved: boolean): void {
    close();
    // Shows the old key's details again, which now include both keys.
    if (replaced) change({ open: replaced.id });
    else {
      requestedKey.value = { id: apiKey.id };
      // No one can place a call with a value that wasn't saved. If there's no room for the details next to the list, they'd cover it.
      if (!unsaved && matchMedia('(width >= 78rem)').matches) change({ open: apiKey.id });
    }
    const label = labelKey(apiKey, keys);
    if (unsaved) warn(`${label} was created, but its value wasn’t saved. Revoke it.`);
    else announce(`${label} is ready to use.`);
  }
  function revoked(key: ApiKeyView): void {
    const nextId = adjacentRowId(key.id);
    closeDetails();
    void done(`${labelKey(key, keys)} was revoked${hasExpired(key, now.peek()) ? '' : ' and no longer works'}.`).then(() =>
      focusRow(nextId),
    );
  }
  function revokedSelected({ revoked, gone }: RevokedApiKeysView): void {
    setSelected(new Set());
    closeDetails();
    const others = gone.length === 0 ? '' : ` ${counted(gone.length, 'other was', 'others were')} already gone.`;
    void done(`${counted(revoked.length, 'key was', 'keys were')} revoked.${others}`).then(() => focusRow(null));
  }

  return (
    <>
      <ListPage
        title={title}
        actions={
          <>
            <Rare>
              {view && !isEmpty && (
                <ExportRowsButton
                  name="api-keys"
                  head={keyCsvHead}
                  load={async () => ({
                    ok: true,
                    value: { rows: matches.map((key) => keyCsvRow(key, now.peek(), ownZone.peek())), nextCursor: null },
                  })}
                />
              )}
              <button type="button" onClick={() => open({ name: 'which' })}>
                Which key is this?
              </button>
            </Rare>
            <button type="button" class="primary" onClick={() => open({ name: 'create', replaced: null })}>
              <Icon name="plus" /> Create API key
            </button>
          </>
        }
        head={view && !isEmpty && <Head view={view} filters={filters} onChange={narrow} />}
        details={
          opened.row ? (
            <ApiKeyDetails
              key={opened.row.id}
              apiKey={opened.row}
              sameNamed={keysWithSameName(keys, opened.row)}
              onReplace={(replaced) => open({ name: 'create', replaced })}
              onLimited={(changed) => {
                const summary = summarizeLimits(changed);
                const label = labelKey(changed, keys);
                void done(summary === '' ? `${label} no longer has limits.` : `${label} is now limited: ${summary}.`);
              }}
              onRevoke={(apiKey) => open({ name: 'revoke', apiKey })}
              onUsed={() => void list.refresh()}
              onClose={closeDetails}
            />
          ) : (
            opened.failure && <EndedApiKey key={filters.open} id={filters.open} failure={opened.failure} onClose={closeDetails} />
          )
        }
        list={list}
        foot={
          view &&
          !isEmpty && (
            <>
              <Pager matches={matches} filters={filters} onChange={change} />
              <SelectionBar
                count={selectedKeys.length}
                noun="key"
                verb="Revoke"
                onClear={() => setSelected(new Set())}
                onAct={() => {
                  const [first, ...others] = selectedKeys;
                  open(first && others.length === 0 ? { name: 'revoke', apiKey: first } : { name: 'revoke-selected' });
                }}
              />
            </>
          )
        }
        noun="your API keys"
      >
        {() =>
          isEmpty ? (
            <FirstKey onCreate={() => open({ name: 'create', replaced: null })} />
          ) : matches.length === 0 ? (
            <Empty title="No matching API keys">
              <p>Search and filters apply only to the keys in this list.</p>
              <button type="button" onClick={() => narrow(everything)}>
                Show all keys
              </button>
            </Empty>
          ) : (
            <KeyTable
              {...{ keys, matches, filters, selected }}
              onSelect={setSelected}
              onChange={change}
              onRevoke={(apiKey) => open({ name: 'revoke', apiKey })}
            />
          )
        }
      </ListPage>
      {dialog?.name === 'create' && (
        <CreateApiKey
          session={session}
          listed={keys}
          replaced={dialog.replaced}
          onCreated={(created) => {
            open({ name: 'save', created, replaced: dialog.replaced });
            void list.refresh();
          }}
          onMaybeCreated={() => void list.refresh()}
          onClose={close}
        />
      )}
      {dialog?.name === 'save' && (
        <SaveKeyValue session={session} created={dialog.created} onClose={(unsaved) => saved(dialog.created, dialog.replaced, unsaved)} />
      )}
      {dialog?.name === 'which' && (
        <WhichKey
          onFound={({ id }) => {
            close();
            requestedKey.value = { id };
            change({ open: id });
          }}
          onClose={close}
        />
      )}
      {dialog?.name === 'revoke' && (
        <RevokeApiKey
          apiKey={dialog.apiKey}
          replacement={newestAfter(keysWithSameName(keys, dialog.apiKey), dialog.apiKey)}
          onReplace={() => open({ name: 'create', replaced: dialog.apiKey })}
          onRevoked={() => revoked(dialog.apiKey)}
          onAlreadyRevoked={() => void done('')}
          onClose={close}
        />
      )}
      {dialog?.name === 'revoke-selected' && <RevokeApiKeys apiKeys={selectedKeys} onRevoked={revokedSelected} onClose={close} />}
    </>
  );
}

/** Scrolls to a requested key. Clears the search and the filters and changes the page, because they may be hiding it. */
function useHighlight(view: ApiKeysView | null, filters: KeyFilters, change: (changes: Partial<KeyFilters>) => void): void {
  const requested = requestedKey.value;
  const before = useRef<typeof requested>(null);
  useEffect(() => {
    if (requested === before.current || requested === null) return;
    const index = keysInView(view?.apiKeys ?? [], { ...filters, ...everything }, now.peek()).findIndex(({ id }) => id === requested.id);
    if (index < 0) return;
    before.current = requested;
    change({ ...everything, page: Math.floor(index / filters.size) });
    focusRow(requested.id);
  }, [requested, view, filters.size]);
}

type HeadProps = { view: ApiKeysView; filters: KeyFilters; onChange: (changes: Partial<KeyFilters>) => void };

function Head({ view: { apiKeys, total }, filters, onChange }: HeadProps) {
  const { search, filter, owner, size } = filters;
  const owners = useMemo(() => listOwners(apiKeys), [apiKeys]);
  // The address may name an owner who was deleted, or whose keys have all been revoked.
  const others = owner === '' || owners.has(owner) ? [] : [[owner, `${owner} (no keys)`] as const];
  const counts = useMemo(
    () => keyFilters.map((name) => [name, filterKeys(apiKeys, '', name, now.value, owner).length] as const),
    [apiKeys, now.value, owner],
  );
  const offered = counts.filter(([name, count]) => count > 0 || name === 'all' || name === filter);
  return (
    <>
      <search class="toolbar">
        <SearchInput label="Search by name" value={search} onInput={(typed) => onChange({ search: typed, page: 0 })} />
        {(owners.size > 1 || others.length > 0) && (
          <FilterSelect
            label="Owner"
            value={owner}
            options={[['', 'All owners'], ...owners, ...others]}
            onChange={(chosen) => onChange({ owner: chosen, page: 0 })}
          />
        )}
        <FilterSelect
          label="Show"
          value={filter}
          options={offered.map(([name, count]) => [name, `${keyFilterLabels[name]} (${formatCount(count)})`])}
          onChange={(chosen) => onChange({ filter: chosen, page: 0 })}
        />
        {filter !== 'expiring' && (
          <ExpiringSoon keys={apiKeys} onShow={() => onChange({ ...screenFilters.initial, filter: 'expiring', size })} />
        )}
      </search>
      {total > apiKeys.length && (
        <p class="notice">
          Newest {formatCount(apiKeys.length)} of {formatCount(total)} keys. Search and filters apply only to these. Your server’s operator
          can list them all with <code>callkey-admin key list --all</code>.
        </p>
      )}
    </>
  );
}

/** Says how many keys expire soon, and which is the first, and shows them when it's pressed. */
function ExpiringSoon({ keys, onShow }: { keys: readonly ApiKeyView[]; onShow: () => void }) {
  const expiringSoon = keysExpiringSoon(keys, now.value);
  const [first] = expiringSoon;
  if (!first || first.expiresAt === null) return null;
  const count = expiringSoon.length === 1 ? 'One key expires' : `${formatCount(expiringSoon.length)} keys expire`;
  const which = `${expiringSoon.length === 1 ? '' : 'First to expire: '}${first.name}, on ${formatDay(toExpiry(first.expiresAt, first.expiryTimeZone))}`;
  return (
    <button type="button" class="attention" data-tip={which} onClick={onShow}>
      {count} within 30 days
    </button>
  );
}

type KeyTableProps = {
  keys: readonly ApiKeyView[];
  matches: readonly ApiKeyView[];
  filters: KeyFilters;
  selected: ReadonlySet<string>;
  onSelect: (ids: ReadonlySet<string>) => void;
  onChange: (changes: Partial<KeyFilters>) => void;
  onRevoke: (key: ApiKeyView) => void;
};

function KeyTable({ keys, matches, filters, selected, onSelect, onChange, onRevoke }: KeyTableProps) {
  const owners = useMemo(() => listOwners(keys), [keys]);
  const columns = useMemo(() => columnsFor(owners, sharedNames(keys)), [owners, keys]);
  const labels = useMemo(() => labelKeys(keys), [keys]);
  const getLabel = ({ id, name }: ApiKeyView) => labels.get(id) ?? name;
  const { sort } = filters;
  return (
    <DataTable
      label="API keys"
      columns={columns}
      rows={isPrinting.value ? matches : paginate(matches, filters.page, filters.size).items}
      getId={({ id }) => id}
      getName={getLabel}
      getClass={(key) =>
        `${hasExpired(key, now.value) || key.ownerDisabled ? 'dim' : ''} ${key.id === requestedKey.value?.id && ['', key.id].includes(filters.open) ? 'highlighted' : ''}`
      }
      sort={sort}
      onSort={(column) => onChange({ sort: sortAfterPress(sort, column, column === 'created' || column === 'used'), page: 0 })}
      onOpen={({ id }) => onChange({ open: id })}
      openId={filters.open}
      getHref={({ id }) => formatAddress('api-keys', { open: id })}
      selection={{ ids: selected, onChange: onSelect }}
      action={{ icon: 'trash', label: (key) => `Revoke ${getLabel(key)}`, run: onRevoke }}
    />
  );
}

/** @param owners by ID; empty for viewers who can't see other users' keys @param shared the names of several keys */
function columnsFor(owners: ReadonlyMap<string, string>, shared: ReadonlySet<string>): Column<ApiKeyView, KeyColumn>[] {
  return [
    {
      name: 'name',
      label: 'Name',
      width: 'name',
      // If the page is too narrow for the owner column, the owner is shown under the name.
      cell: (key) => (
        <>
          <span class="line">
            <Clip>{key.name}</Clip>
            {shared.has(key.name) && <span class="faint">{shortId(key.id)}</span>}
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
    },
    ...(owners.size === 0
      ? []
      : ([
          {
            name: 'owner',
            label: 'Owner',
            width: 'text',
            needs: 'medium',
            cell: (key) => key.owner && (key.owner.isYou ? <OwnerTag owner={key.owner} /> : <Clip>{owners.get(getOwnerId(key))}</Clip>),
          },
        ] satisfies Column<ApiKeyView, KeyColumn>[])),
    { name: 'created', label: 'Created', width: 'day', cell: ({ createdAt }) => <Day at={createdAt} /> },
    { name: 'used', label: 'Last used', width: 'day', cell: ({ lastUsedAt }) => <Day at={lastUsedAt} /> },
    { name: 'expiry', label: 'Expiry', width: 'end', cell: (key) => <Expiry apiKey={key} isInTable /> },
  ];
}

type PagerProps = { matches: readonly ApiKeyView[]; filters: KeyFilters; onChange: (changes: Partial<KeyFilters>) => void };

function Pager({ matches, filters, onChange }: PagerProps) {
  const page = paginate(matches, filters.page, filters.size);
  const button = (label: string, icon: 'back' | 'forward', step: number, isPossible: boolean) => (
    <button
      type="button"
      class="icon-only"
      aria-label={label}
      aria-disabled={!isPossible}
      onClick={() => {
        if (!isPossible) return;
        onChange({ page: page.index + step });
        scrollToTop();
      }}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <>
      <span role="status">
        {page.count > 1 && `${formatCount(page.first)}–${formatCount(page.last)} of `}
        {matches.length === 0 ? 'No keys' : counted(matches.length, 'key')}
      </span>
      <span class="row end">
        <label>
          Rows per page{' '}
          <select
            value={String(filters.size)}
            onChange={({ currentTarget: { value } }) => {
              writePreference('rows', value);
              onChange({ size: Number(value), page: Math.floor(Math.max(0, page.first - 1) / Number(value)) });
            }}
          >
            {limits.pageSizes.map((size) => (
              <option key={size} value={String(size)}>
                {size}
              </option>
            ))}
          </select>
        </label>
        {button('Previous page', 'back', -1, page.index > 0)}
        <span>
          Page {formatCount(page.index + 1)} of {formatCount(page.count)}
        </span>
        {button('Next page', 'forward', 1, page.index < page.count - 1)}
      </span>
    </>
  );
}

function FirstKey({ onCreate }: { onCreate: () => void }) {
  const [campaign] = useCampaigns(60_000).state.value.view?.options ?? [];
  return (
    <Empty title="No API keys yet">
      <p>With an API key, your systems can place and cancel calls without anyone signing in. Each call is one request:</p>
      <pre>{exampleCall(server.value, campaign?.id ?? '{campaignId}', 'order-4711')}</pre>
      <p>
        <ReferenceLink verb="lists errors and limits, and has examples in eight languages." />
      </p>
      <button type="button" class="primary" onClick={onCreate}>
        <Icon name="plus" /> Create your first key
      </button>
    </Empty>
  );
}

/** Finds the key that a value belongs to. The value is hashed on this computer and never leaves it. */
function WhichKey({ onFound, onClose }: { onFound: (key: ApiKeyView) => void; onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isUnknown, setUnknown] = useState(false);
  return (
    <FormDialog
      title="Which key is this?"
      verb="Find key"
      cancel="Close"
      changesNothing
      act={() => {
        setUnknown(false);
        return window.callkey.identifyApiKey(input.current?.value ?? '');
      }}
      onDone={(apiKey) => {
        if (input.current) input.current.value = '';
        if (apiKey) onFound(apiKey);
        else setUnknown(true);
      }}
      onClose={onClose}
    >
      <Field
        name="keyValue"
        label="Key value"
        hint="Paste a key value you found, or the line it’s in. It stays on this computer: only its hash is sent to the server."
      >
        {(binding) => <input {...binding} ref={input} type="password" autocomplete="off" spellcheck={false} data-autofocus />}
      </Field>
      <div role="status">
        {isUnknown && (
          <p class="notice">
            None of the keys you can see has this value. The key may have been revoked, belong to someone else, or come from another server.
          </p>
        )}
      </div>
    </FormDialog>
  );
}
