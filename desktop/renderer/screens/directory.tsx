import { useCallback, useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import { ConfirmWithCode } from '../components/confirm.tsx';
import { CopyButton } from '../components/copy-button.tsx';
import { Details, Facts } from '../components/details.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Field, FormActions, FormError, TextField, useAction } from '../components/form.tsx';
import { Icon } from '../components/icons.tsx';
import { Empty, Loadable, MoreButton, typingMs, useDebounced, useIsTaken, usePages, useResource, useView } from '../components/list.tsx';
import { Page } from '../components/page.tsx';
import { Clip, type Column, DataTable, focusRow } from '../components/table.tsx';
import { formatAddress } from '../state/addresses.ts';
import { announce } from '../state/announcement.ts';
import {
  childKinds,
  type DirectoryEntry,
  type DirectoryKind,
  type DirectoryView,
  directoryPages,
  directoryView,
  entriesInView,
  kindLabels,
  parentKinds,
  requests,
} from '../state/directory.ts';
import { fieldError, generalError } from '../state/failure-text.ts';
import { formatNumber, pluralize } from '../state/format.ts';
import { mapped } from '../state/list.ts';
import type { ScreenProps } from '../state/navigation.ts';

/** Returns the kinds of entries that the viewer can see. Only staff can see partners. */
function kindsFor({ viewer }: SessionView): readonly DirectoryKind[] {
  return viewer.userType === 'staff' ? ['partner', 'account', 'campaign'] : ['account', 'campaign'];
}

/** Lets users find, create, rename, delete and open partners, accounts and campaigns. */
export function Directory({ session, title }: ScreenProps) {
  const kinds = kindsFor(session);
  const [view, change] = useView(directoryView.name, directoryView.initial);
  const { parent, search, open: openId } = view;
  const kind = kinds.find((each) => each === view.kind) ?? kinds[0] ?? 'account';
  const parentEntry = useEntry(parentKinds[kind], parent);
  const { resource, pages, isWhole } = usePages(`directory/${kind}/${parent}`, (text) => directoryPages(kind, parent, text), search.trim());
  const [isCreating, setCreating] = useState(false);
  const [renaming, setRenaming] = useState<DirectoryEntry | null>(null);
  const [deleting, setDeleting] = useState<DirectoryEntry | null>(null);
  const entries = resource.state.value.value?.entries ?? [];
  const matches = isWhole ? entriesInView(entries, search) : entries;
  const listedEntry = entries.find(({ id }) => id === openId);
  const foundEntry = useEntry(listedEntry ? null : kind, openId);
  const openEntry = listedEntry ?? foundEntry;
  const { singular, plural, noun } = kindLabels[kind];
  const closeDetails = useCallback(() => {
    change({ open: '' });
    focusRow(openId);
  }, [openId]);
  const show = (changes: Partial<DirectoryView>) => {
    change({ open: '', ...changes });
  };
  const changed = (text: string) => {
    setCreating(false);
    setRenaming(null);
    setDeleting(null);
    announce(text);
    void resource.refresh();
  };

  return (
    <>
      <Page
        title={title}
        actions={
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            <Icon name="plus" /> Create {noun}
          </button>
        }
        head={
          <search class="toolbar">
            <label class="grow">
              <span class="visually-hidden">Search by name or ID</span>
              <input
                type="search"
                placeholder="Search by name or ID"
                value={search}
                onInput={({ currentTarget }) => change({ search: currentTarget.value })}
              />
            </label>
            <label>
              <span class="visually-hidden">Show</span>
              <select
                value={kind}
                onChange={({ currentTarget }) =>
                  show({ kind: kinds.find((name) => name === currentTarget.value) ?? kind, parent: '', search: '' })
                }
              >
                {kinds.map((name) => (
                  <option key={name} value={name}>
                    {kindLabels[name].plural}
                  </option>
                ))}
              </select>
            </label>
            {parentEntry && (
              <button type="button" class="clip" onClick={() => show({ parent: '' })}>
                In <bdi>{parentEntry.name}</bdi> <Icon name="close" />
                <span class="visually-hidden">Show all {noun}s</span>
              </button>
            )}
          </search>
        }
        details={
          openEntry && (
            <EntryDetails
              entry={openEntry}
              session={session}
              onRename={() => setRenaming(openEntry)}
              onDelete={() => setDeleting(openEntry)}
              onShow={(child) => show({ kind: child, parent: openEntry.id, search: '' })}
              onClose={closeDetails}
            />
          )
        }
        resource={resource}
        foot={
          <>
            <span role="status">
              {pluralize(matches.length, noun)}
              {resource.state.value.value?.nextCursor && ' so far'}
            </span>
            <MoreButton resource={resource} pages={pages} label={`Show more ${noun}s`} />
          </>
        }
      >
        <Loadable resource={resource} noun={plural.toLowerCase()} isInPage>
          {() =>
            matches.length === 0 ? (
              <Empty title={search.trim() === '' ? `No ${noun}s yet` : `No matching ${noun}s`}>
                {search.trim() === '' && <p>{whyCreate[kind]}</p>}
              </Empty>
            ) : (
              <EntryTable kind={kind} entries={matches} openId={openId} onOpen={({ id }) => change({ kind, open: id })} />
            )
          }
        </Loadable>
      </Page>
      {isCreating && (
        <CreateEntry
          kind={kind}
          parent={parentEntry}
          session={session}
          onClose={() => setCreating(false)}
          onCreated={({ name }) => changed(`${singular} ${name} was created.`)}
        />
      )}
      {deleting && (
        <DeleteEntry
          entry={deleting}
          onClose={() => setDeleting(null)}
          onDeleted={() => {
            change({ open: '' });
            changed(`${singular} ${deleting.name} was deleted.`);
          }}
        />
      )}
      {renaming && (
        <RenameEntry
          entry={renaming}
          onClose={() => setRenaming(null)}
          onRenamed={({ name }) => changed(`${singular} renamed to ${name}.`)}
        />
      )}
    </>
  );
}

/**
 * Finds the entry that an address names; null until it's found, or if it doesn't exist. @param kind null if the address doesn't name one
 */
function useEntry(kind: DirectoryKind | null, id: string): DirectoryEntry | null {
  const load = async () =>
    kind !== null && id !== ''
      ? requests[kind].list(null, { search: id, cursor: null })
      : { ok: true as const, value: { entries: [], nextCursor: null } };
  const { value } = useResource<{ entries: DirectoryEntry[] }>(load, `${kind} ${id}`).state.value;
  return value?.entries.find((entry) => entry.id === id && entry.kind === kind) ?? null;
}

const whyCreate: Readonly<Record<DirectoryKind, string>> = {
  partner: 'A partner has accounts, and users who manage them.',
  account: 'An account has campaigns. Its API keys can’t be used for other accounts.',
  campaign: 'API keys place calls in campaigns.',
};

type EntryTableProps = {
  kind: DirectoryKind;
  entries: readonly DirectoryEntry[];
  openId: string;
  onOpen: (entry: DirectoryEntry) => void;
};

/** Shows entries of one kind, each with the entries that contain it, because two accounts may have the same name. */
function EntryTable({ kind, entries, openId, onOpen }: EntryTableProps) {
  return (
    <DataTable
      label={kindLabels[kind].plural}
      columns={columns[kind]}
      rows={entries}
      getId={({ id }) => id}
      getName={({ name }) => name}
      openId={openId}
      getHref={({ id }) => formatAddress('directory', { kind, open: id })}
      onOpen={onOpen}
    />
  );
}

type EntryColumn = Column<DirectoryEntry, 'name' | 'account' | 'partner' | 'count'>;

const name: EntryColumn = { name: 'name', label: 'Name', width: 'name', cell: (entry) => <Clip>{entry.name}</Clip> };
const partner: EntryColumn = { name: 'partner', label: 'Partner', width: 'text', cell: (entry) => <Clip>{entry.partner?.name}</Clip> };
const account: EntryColumn = { name: 'account', label: 'Account', width: 'text', cell: (entry) => <Clip>{entry.account?.name}</Clip> };
const count = (label: string): EntryColumn => ({
  name: 'count',
  label,
  width: 'count',
  cell: (entry) => formatNumber(entry.count ?? 0),
});

const columns: Readonly<Record<DirectoryKind, EntryColumn[]>> = {
  partner: [name, count('Accounts')],
  account: [name, partner, count('Campaigns')],
  campaign: [name, account, partner],
};

type EntryDetailsProps = {
  entry: DirectoryEntry;
  session: SessionView;
  onRename: () => void;
  onDelete: () => void;
  onShow: (kind: DirectoryKind) => void;
  onClose: () => void;
};

/** Shows everything about a partner, an account or a campaign, and the actions for it. */
function EntryDetails({ entry, session, onRename, onDelete, onShow, onClose }: EntryDetailsProps) {
  const { kind, id, name, partner, account, count } = entry;
  const childKind = childKinds[kind];
  return (
    <Details title={name} badge={<span class="badge">{kindLabels[kind].singular}</span>} onClose={onClose}>
      <div class="actions at-start">
        <OpenLink entry={entry} session={session} />
        {childKind && (
          <button type="button" onClick={() => onShow(childKind)}>
            Show {kindLabels[childKind].noun}s
          </button>
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
          [
            'ID',
            <span key="id" class="line">
              <code>{id}</code> <CopyButton text={id} noun="ID" />
            </span>,
          ],
          ...(account ? ([['Account', <bdi key="account">{account.name}</bdi>]] as const) : []),
          ...(partner ? ([['Partner', <bdi key="partner">{partner.name}</bdi>]] as const) : []),
          ...(childKind && count !== null ? ([[kindLabels[childKind].plural, formatNumber(count)]] as const) : []),
        ]}
      />
    </Details>
  );
}

/** Switches staff to a partner or an account, or opens a campaign's calls for any user. */
function OpenLink({ entry, session }: Pick<EntryDetailsProps, 'entry' | 'session'>) {
  const { kind, id, account } = entry;
  const isStaff = session.viewer.userType === 'staff';
  if (kind === 'campaign') {
    const tenancy = isStaff && account ? ({ kind: 'account', id: account.id } as const) : undefined;
    return (
      <a class="button primary" href={formatAddress('calls', { campaign: id }, tenancy)}>
        Open calls
      </a>
    );
  }
  return (
    isStaff && (
      <a class="button primary" href={formatAddress('api-keys', {}, { kind, id })}>
        Open
      </a>
    )
  );
}

type CreateEntryProps = {
  kind: DirectoryKind;
  /** The new entry's partner or account, if that's already known. */
  parent: DirectoryEntry | null;
  session: SessionView;
  onCreated: (entry: DirectoryEntry) => void;
  onClose: () => void;
};

function CreateEntry({ kind, parent, session, onCreated, onClose }: CreateEntryProps) {
  // A partner user has only one partner, and doesn't need to choose it.
  const own = kind === 'account' && session.viewer.partner ? session.viewer.partner : parent;
  const [name, setName] = useState('');
  const [parentId, setParentId] = useState(own?.id ?? '');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const parentField = kind === 'account' ? 'partnerId' : 'accountId';
  // Checks again after a failure, because the entry may have been created and only the response lost.
  const isTaken = useIsTaken(name, findEntries(kind, parentId), `${parentId} ${failure !== null}`);
  return (
    <Dialog title={`Create ${kindLabels[kind].noun}`} onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => requests[kind].create(name, own?.id ?? parentId), onCreated);
        }}
      >
        <TextField
          label="Name"
          error={fieldError(failure, 'name')}
          warning={takenWarning(kind, name, isTaken)}
          type="text"
          autocomplete="off"
          value={name}
          onInput={setName}
          autofocus
        />
        {kind !== 'partner' && own === null && (
          <ParentField
            kind={kind === 'account' ? 'partner' : 'account'}
            parentId={parentId}
            error={fieldError(failure, parentField)}
            onChange={setParentId}
          />
        )}
        {own && (
          <p class="hint">
            In <bdi>{own.name}</bdi>
          </p>
        )}
        <FormError text={generalError(failure, own === null ? ['name', parentField] : ['name'])} />
        <FormActions verb="Create" verbing="Creating…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

/** Finds entries by name. @param parentId empty for all */
function findEntries(kind: DirectoryKind, parentId: string) {
  return (search: string) =>
    mapped(requests[kind].list(parentId === '' ? null : parentId, { search, cursor: null }), ({ entries }) => entries);
}

function takenWarning(kind: DirectoryKind, name: string, isTaken: boolean): string | null {
  return isTaken ? `${kindLabels[kind].singular} ${name.trim()} already exists.` : null;
}

type RenameEntryProps = { entry: DirectoryEntry; onRenamed: (entry: DirectoryEntry) => void; onClose: () => void };

function RenameEntry({ entry: { kind, id, name: current, partner, account }, onRenamed, onClose }: RenameEntryProps) {
  const [name, setName] = useState(current);
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const isTaken = useIsTaken(name, findEntries(kind, (account ?? partner)?.id ?? ''), '', id);
  return (
    <Dialog title={`Rename ${kindLabels[kind].noun}`} onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => requests[kind].rename(id, name), onRenamed);
        }}
      >
        <TextField
          label="Name"
          error={fieldError(failure, 'name')}
          warning={takenWarning(kind, name, isTaken)}
          type="text"
          autocomplete="off"
          value={name}
          onInput={setName}
          autofocus
        />
        <FormError text={generalError(failure, ['name'])} />
        <FormActions verb="Rename" verbing="Renaming…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

type DeleteEntryProps = { entry: DirectoryEntry; onDeleted: () => void; onClose: () => void };

/** Asks before deleting an entry. The core refuses if something belongs to it, and says what. */
function DeleteEntry({ entry: { kind, id, name }, onDeleted, onClose }: DeleteEntryProps) {
  return (
    <ConfirmWithCode
      title={`Delete ${kindLabels[kind].noun}?`}
      lead={
        <>
          <strong>{name}</strong> will be deleted permanently. Nothing may belong to it anymore.
        </>
      }
      verb={`Delete ${kindLabels[kind].noun}`}
      verbing="Deleting…"
      needsCode={false}
      act={() => requests[kind].delete(id)}
      onDone={onDeleted}
      onClose={onClose}
    />
  );
}

type ParentFieldProps = { kind: 'partner' | 'account'; parentId: string; error: string | null; onChange: (id: string) => void };

/** Offers partners or accounts for a new entry, or a search if there are more than a list can show. */
function ParentField({ kind, parentId, error, onChange }: ParentFieldProps) {
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<Named | null>(null);
  const debouncedSearch = useDebounced(search.trim(), typingMs);
  const resource = useResource(() => requests[kind].list(null, { search: debouncedSearch, cursor: null }), debouncedSearch);
  const { singular, plural } = kindLabels[kind];
  return (
    <Loadable resource={resource} noun={plural.toLowerCase()}>
      {({ entries, nextCursor }) => {
        // The chosen entry is still offered while the user searches for others.
        const isElsewhere = chosen !== null && !entries.some(({ id }) => id === chosen.id);
        const options: (Named & { partner?: Named | null })[] = isElsewhere ? [chosen, ...entries] : entries;
        return (
          <>
            {(search !== '' || nextCursor !== null) && (
              <TextField label={`Search ${plural.toLowerCase()}`} type="text" autocomplete="off" value={search} onInput={setSearch} />
            )}
            <Field label={singular} error={error}>
              {(binding) => (
                <select
                  {...binding}
                  value={parentId}
                  onChange={({ currentTarget }) => {
                    setChosen(options.find(({ id }) => id === currentTarget.value) ?? null);
                    onChange(currentTarget.value);
                  }}
                >
                  <option value="">Choose…</option>
                  {options.map(({ id, name, partner }) => (
                    <option key={id} value={id}>
                      {partner ? `${name} · ${partner.name}` : name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </>
        );
      }}
    </Loadable>
  );
}
