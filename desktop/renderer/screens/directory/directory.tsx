import { useCallback, useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { Icon } from '../../components/icons.tsx';
import { Empty, Loadable, useResource } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { MoreButton } from '../../components/table/more-button.tsx';
import { focusRow } from '../../components/table/table-focus.ts';
import { usePages } from '../../components/use-pages.ts';
import { useView } from '../../components/use-view.ts';
import { announce } from '../../state/announcement.ts';
import {
  type DirectoryEntry,
  type DirectoryKind,
  type DirectoryView,
  directoryPages,
  directoryView,
  entriesInView,
  kindLabels,
  parentKinds,
  requests,
} from '../../state/directory.ts';
import { pluralize } from '../../state/format/format.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { CreateEntry, DeleteEntry, RenameEntry } from './directory-dialogs.tsx';
import { EntryDetails } from './entry-details.tsx';
import { EntryTable } from './entry-table.tsx';

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
