import { useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import type { DirectoryAccountsView, DirectoryCampaignsView, DirectoryPartnersView } from '#contract/console/directory.ts';
import type { SessionView } from '#contract/console/session.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../ipc.ts';
import { ChooseField, type Matches, type Option } from '../components/choose.tsx';
import { Confirm } from '../components/confirm.tsx';
import { Copyable, Details, Facts } from '../components/details.tsx';
import { FilterSelect, FormDialog, SearchInput, TextField } from '../components/form.tsx';
import { Icon } from '../components/icons.tsx';
import { Count, Empty, useDialogs, useFilters, useIsTaken, useOpen, useSearchedList } from '../components/list.tsx';
import { ListPage } from '../components/page.tsx';
import { Clip, type Column, DataTable } from '../components/table.tsx';
import { formatAddress } from '../state/addresses.ts';
import { lookUpChange, lookUpGone } from '../state/failure-text.ts';
import { defineFilters, oneOf, text } from '../state/filters.ts';
import { capitalized } from '../state/labels.ts';
import { findById, mapped } from '../state/list.ts';
import type { ScreenProps } from '../state/navigation.ts';

type Kind = 'partner' | 'account' | 'campaign';
/** A partner, account or campaign. `count` is the number of its accounts or campaigns; null for a campaign. */
type Entry = Named & { kind: Kind; partner: Named | null; account: Named | null; count: number | null };
type EntriesView = { entries: Entry[]; nextCursor: string | null };

/**
 * @property kind empty for the first kind that the viewer sees
 * @property parent the ID of the partner or account whose accounts or campaigns are shown; empty for all
 * @property open the ID of the entry whose details are shown
 */
const screenFilters = defineFilters('directory', ['kind', 'open'], {
  kind: oneOf(['partner', 'account', 'campaign', ''], ''),
  open: text(),
  parent: text(),
  search: text(),
});
type Filters = typeof screenFilters.initial;

/**
 * @property parent the kind of entry that contains it, and `child` the kind that it contains
 * @property list takes the ID of the parent whose entries are listed; null for all
 */
type KindRules = {
  parent: Exclude<Kind, 'campaign'> | null;
  child: Kind | null;
  why: string;
  list(parentId: string | null, page: { search: string; cursor: string | null }): Promise<Result<EntriesView>>;
  create(name: string, parentId: string): Promise<Result<Entry>>;
  rename(id: string, name: string): Promise<Result<Entry>>;
  delete(id: string): Promise<Result<null>>;
};

const kinds: Readonly<Record<Kind, KindRules>> = {
  partner: {
    parent: null,
    child: 'account',
    why: 'A partner has accounts, and users who manage them.',
    list: (_, page) =>
      mapped(window.callkey.request('listDirectoryPartners', page), ({ partners, ...rest }) => ({
        ...rest,
        entries: partners.map(partnerEntry),
      })),
    create: (name) => mapped(window.callkey.request('createPartner', { name }), ({ partner }) => partnerEntry(partner)),
    rename: (id, name) => mapped(window.callkey.request('renamePartner', { id, name }), ({ partner }) => partnerEntry(partner)),
    delete: (id) => window.callkey.request('deletePartner', { id }),
  },
  account: {
    parent: 'partner',
    child: 'campaign',
    why: 'An account has campaigns. Its API keys can’t be used for other accounts.',
    list: (partner, page) =>
      mapped(window.callkey.request('listDirectoryAccounts', { partner, ...page }), ({ accounts, ...rest }) => ({
        ...rest,
        entries: accounts.map(accountEntry),
      })),
    create: (name, partnerId) =>
      mapped(window.callkey.request('createAccount', { name, partnerId }), ({ account }) => accountEntry(account)),
    rename: (id, name) => mapped(window.callkey.request('renameAccount', { id, name }), ({ account }) => accountEntry(account)),
    delete: (id) => window.callkey.request('deleteAccount', { id }),
  },
  campaign: {
    parent: 'account',
    child: null,
    why: 'API keys place calls in campaigns.',
    list: (account, page) =>
      mapped(window.callkey.request('listDirectoryCampaigns', { account, ...page }), ({ campaigns, ...rest }) => ({
        ...rest,
        entries: campaigns.map(campaignEntry),
      })),
    create: (name, accountId) =>
      mapped(window.callkey.request('createCampaign', { name, accountId }), ({ campaign }) => campaignEntry(campaign)),
    rename: (id, name) => mapped(window.callkey.request('changeCampaign', { id, name }), ({ campaign }) => campaignEntry(campaign)),
    delete: (id) => window.callkey.request('deleteCampaign', { id }),
  },
};

function partnerEntry({ id, name, accounts }: DirectoryPartnersView['partners'][number]): Entry {
  return { kind: 'partner', id, name, partner: null, account: null, count: accounts };
}

function accountEntry({ id, name, partner, campaigns }: DirectoryAccountsView['accounts'][number]): Entry {
  return { kind: 'account', id, name, partner, account: null, count: campaigns };
}

function campaignEntry({ id, name, partner, account }: DirectoryCampaignsView['campaigns'][number]): Entry {
  return { kind: 'campaign', id, name, partner, account, count: null };
}

/** @property parent contains the new entry; null if the user chooses it */
type EntryDialog = { name: 'create'; kind: Kind; parent: Entry | null } | { name: 'rename' | 'delete'; entry: Entry };

export function Directory({ session, title }: ScreenProps) {
  // Only staff can see partners.
  const offered: readonly Kind[] = session.viewer.userType === 'staff' ? ['partner', 'account', 'campaign'] : ['account', 'campaign'];
  const [filters, change] = useFilters(screenFilters);
  const { parent, search } = filters;
  const kind = offered.find((each) => each === filters.kind) ?? offered[0] ?? 'account';
  const plural = `${kind}s`;
  const { list, isWhole } = useSearchedList({
    key: `directory/${kind}/${parent}`,
    search: search.trim(),
    load: (typed, cursor) => kinds[kind].list(parent === '' ? null : parent, { search: typed, cursor }),
  });
  const { dialog, open, close, done } = useDialogs<EntryDialog>(list);
  const { view } = list.state.value;
  const entries = view?.entries ?? [];
  const matches = isWhole ? matching(entries, search) : entries;
  const opened = useOpen(view?.entries, filters.open, (id) => findEntry(kind, id)).row;
  const parentKind = kinds[kind].parent;
  const { row: parentEntry, failure: parentFailure } = useOpen(unlisted, parentKind ? parent : '', (id) =>
    findEntry(parentKind ?? 'partner', id),
  );
  // A new entry belongs to the parent, so that must be known first.
  const isParentLoading = parentKind !== null && parent !== '' && !parentEntry && !parentFailure;
  const show = (changes: Partial<Filters>) => change({ open: '', ...changes });

  return (
    <>
      <ListPage
        title={title}
        actions={
          <button
            type="button"
            class="primary"
            disabled={isParentLoading}
            onClick={() => open({ name: 'create', kind, parent: parentEntry })}
          >
            <Icon name="plus" /> Create {kind}
          </button>
        }
        head={
          <search class="toolbar">
            <SearchInput label="Search by name or ID" value={search} onInput={(typed) => change({ search: typed })} />
            <FilterSelect
              label="Show"
              value={kind}
              options={offered.map((name) => [name, capitalized(`${name}s`)])}
              onChange={(chosen) => show({ kind: chosen, parent: '', search: '' })}
            />
            {parentEntry && (
              <button type="button" class="clip" onClick={() => show({ parent: '' })}>
                In <bdi>{parentEntry.name}</bdi> <Icon name="close" />
                <span class="visually-hidden">Show all {plural}</span>
              </button>
            )}
          </search>
        }
        details={
          opened && (
            <EntryDetails
              entry={opened}
              session={session}
              onCreate={(child) => open({ name: 'create', kind: child, parent: opened })}
              onRename={() => open({ name: 'rename', entry: opened })}
              onDelete={() => open({ name: 'delete', entry: opened })}
              onShow={(child) => show({ kind: child, parent: opened.id, search: '' })}
              onClose={() => change({ open: '' })}
            />
          )
        }
        list={list}
        foot={<Count list={list} count={matches.length} noun={kind} />}
        noun={plural}
      >
        {() =>
          matches.length > 0 ? (
            <DataTable
              label={capitalized(plural)}
              columns={columns[kind]}
              rows={matches}
              getId={({ id }) => id}
              getName={({ name }) => name}
              openId={filters.open}
              getHref={({ id }) => formatAddress('directory', { kind, open: id })}
              onOpen={({ id }) => change({ kind, open: id })}
            />
          ) : search.trim() === '' ? (
            <Empty title={`No ${plural} yet`}>
              <p>{kinds[kind].why}</p>
            </Empty>
          ) : (
            <Empty title={`No matching ${plural}`} />
          )
        }
      </ListPage>
      {dialog?.name === 'create' && (
        <CreateEntry
          kind={dialog.kind}
          parent={dialog.parent}
          session={session}
          onClose={close}
          onCreated={(created) => void done(`${capitalized(created.kind)} ${created.name} was created.`)}
        />
      )}
      {dialog?.name === 'rename' && (
        <RenameEntry entry={dialog.entry} onClose={close} onRenamed={({ name }) => void done(`${capitalized(kind)} renamed to ${name}.`)} />
      )}
      {dialog?.name === 'delete' && (
        // The core refuses if something belongs to the entry, and says what.
        <Confirm
          title={`Delete ${kind}?`}
          lead={
            <>
              <strong>{dialog.entry.name}</strong> will be deleted permanently. Nothing may belong to it anymore
              {kinds[kind].child && dialog.entry.count ? `, but it has ${counted(dialog.entry.count, kinds[kind].child)}` : ''}.
            </>
          }
          verb={`Delete ${kind}`}
          verbing="Deleting…"
          asksCode={false}
          act={() => kinds[kind].delete(dialog.entry.id)}
          lookUp={() => lookUpGone(findEntry(kind, dialog.entry.id))}
          onDone={() => {
            change({ open: '' });
            void done(`${capitalized(kind)} ${dialog.entry.name} was deleted.`);
          }}
          onClose={close}
        />
      )}
    </>
  );
}

/** The parent is of another kind than the listed entries. */
const unlisted: readonly Entry[] = [];

/** Returns the entries that match the search by name or ID, the same ones that the core would find. */
function matching(entries: readonly Entry[], search: string): Entry[] {
  const query = search.trim();
  return entries.filter(({ id, name }) => foldText(name).includes(foldText(query)) || id === query);
}

function findEntry(kind: Kind, id: string): Promise<Result<Entry>> {
  return findById(
    mapped(kinds[kind].list(null, { search: id, cursor: null }), ({ entries }) => entries),
    id,
  );
}

type EntryColumn = Column<Entry, 'name' | 'account' | 'partner' | 'count'>;

const name: EntryColumn = { name: 'name', label: 'Name', width: 'name', cell: (entry) => <Clip>{entry.name}</Clip> };
const partner: EntryColumn = { name: 'partner', label: 'Partner', width: 'text', cell: (entry) => <Clip>{entry.partner?.name}</Clip> };
const account: EntryColumn = { name: 'account', label: 'Account', width: 'text', cell: (entry) => <Clip>{entry.account?.name}</Clip> };
const count = (label: string): EntryColumn => ({
  name: 'count',
  label,
  width: 'count',
  cell: (entry) => formatCount(entry.count ?? 0),
});

/** Shows the entries that contain each, because two accounts may have the same name. */
const columns: Readonly<Record<Kind, EntryColumn[]>> = {
  partner: [name, count('Accounts')],
  account: [name, partner, count('Campaigns')],
  campaign: [name, account, partner],
};

type EntryDetailsProps = {
  entry: Entry;
  session: SessionView;
  onCreate: (kind: Kind) => void;
  onRename: () => void;
  onDelete: () => void;
  onShow: (kind: Kind) => void;
  onClose: () => void;
};

function EntryDetails({ entry, session, onCreate, onRename, onDelete, onShow, onClose }: EntryDetailsProps) {
  const { kind, id, name, partner, account, count } = entry;
  const { child } = kinds[kind];
  return (
    <Details title={name} rowId={id} badge={<span class="badge">{capitalized(kind)}</span>} onClose={onClose}>
      <div class="row">
        <OpenLink entry={entry} isStaff={session.viewer.userType === 'staff'} />
        {child && (
          <>
            <button type="button" onClick={() => onShow(child)}>
              Show {child}s
            </button>
            <button type="button" onClick={() => onCreate(child)}>
              Create {child}…
            </button>
          </>
        )}
        <button type="button" onClick={onRename}>
          Rename…
        </button>
        <button type="button" class="warns" onClick={onDelete}>
          Delete…
        </button>
      </div>
      <Facts
        facts={[
          ['ID', <Copyable key="id" text={id} noun="ID" />],
          ['Account', account && <bdi key="account">{account.name}</bdi>],
          ['Partner', partner && <bdi key="partner">{partner.name}</bdi>],
          [child ? capitalized(`${child}s`) : '', child && count !== null && formatCount(count)],
        ]}
      />
    </Details>
  );
}

/** Switches staff to a partner or an account, or opens a campaign's calls for any user. */
function OpenLink({ entry: { kind, id, account }, isStaff }: { entry: Entry; isStaff: boolean }) {
  const isCampaign = kind === 'campaign';
  if (!isCampaign && !isStaff) return null;
  const calls = () => formatAddress('calls', { campaign: id }, isStaff && account ? { kind: 'account', id: account.id } : undefined);
  return (
    <a class="button primary" href={isCampaign ? calls() : formatAddress('api-keys', {}, { kind, id })}>
      {isCampaign ? 'Open calls' : 'Open'}
    </a>
  );
}

type CreateEntryProps = {
  kind: Kind;
  /** The new entry's partner or account, if that's already known. */
  parent: Entry | null;
  session: SessionView;
  onCreated: (entry: Entry) => void;
  onClose: () => void;
};

function CreateEntry({ kind, parent, session, onCreated, onClose }: CreateEntryProps) {
  const { parent: parentKind } = kinds[kind];
  // A partner user has only one partner, and doesn't need to choose it.
  const own = kind === 'account' && session.viewer.partner ? session.viewer.partner : parent;
  const [name, setName] = useState('');
  const [chosen, choose] = useState<Named | null>(own);
  // Looks again after a lost response, because the entry may have been created.
  const [lost, setLost] = useState(0);
  const parentId = (own ?? chosen)?.id ?? '';
  return (
    <FormDialog
      title={`Create ${kind}`}
      act={() => kinds[kind].create(name, parentId)}
      onDone={onCreated}
      onLost={() => setLost(lost + 1)}
      verb="Create"
      verbing="Creating…"
      onClose={onClose}
    >
      <NameField kind={kind} parentId={parentId} searchKey={`${parentId} ${lost}`} value={name} onInput={setName} />
      {parentKind && own === null && (
        <ChooseField
          name={`${parentKind}Id`}
          label={capitalized(parentKind)}
          noun={parentKind}
          find={(search) => findParents(parentKind, search)}
          chosen={chosen}
          none="Choose…"
          onChoose={choose}
        />
      )}
      {own && (
        <p class="hint">
          In <bdi>{own.name}</bdi>
        </p>
      )}
    </FormDialog>
  );
}

type RenameEntryProps = { entry: Entry; onRenamed: (entry: Entry) => void; onClose: () => void };

function RenameEntry({ entry: { kind, id, name: current, partner, account }, onRenamed, onClose }: RenameEntryProps) {
  const [name, setName] = useState(current);
  return (
    <FormDialog
      title={`Rename ${kind}`}
      act={() => kinds[kind].rename(id, name)}
      lookUp={() => lookUpChange(findEntry(kind, id), (found) => found.name === name.trim())}
      onDone={onRenamed}
      verb="Rename"
      verbing="Renaming…"
      onClose={onClose}
    >
      <NameField kind={kind} parentId={(account ?? partner)?.id ?? ''} id={id} value={name} onInput={setName} />
    </FormDialog>
  );
}

/** @property id of the entry that gets the name, if it already exists */
type NameFieldProps = { kind: Kind; parentId: string; searchKey?: string; id?: string; value: string; onInput: (name: string) => void };

function NameField({ kind, parentId, searchKey = '', id = '', value, onInput }: NameFieldProps) {
  const find = (search: string) =>
    mapped(kinds[kind].list(parentId === '' ? null : parentId, { search, cursor: null }), ({ entries }) => entries);
  const isTaken = useIsTaken(value, find, searchKey, id);
  const warning = isTaken ? `${capitalized(kind)} ${value.trim()} already exists.` : null;
  return <TextField name="name" label="Name" warning={warning} value={value} onInput={onInput} autofocus />;
}

function findParents(kind: Kind, search: string): Promise<Result<Matches<Option>>> {
  return mapped(kinds[kind].list(null, { search, cursor: null }), ({ entries, nextCursor }) => ({
    options: entries.map(({ id, name, partner }) => ({ id, name: partner ? `${name} · ${partner.name}` : name, caption: '' })),
    isAll: nextCursor === null,
  }));
}
