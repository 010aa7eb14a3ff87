import { useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import { ConfirmWithCode } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Field, FormError } from '../../components/forms/field.tsx';
import { FormActions } from '../../components/forms/form-actions.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { useIsTaken } from '../../components/forms/use-is-taken.ts';
import { Loadable, useResource } from '../../components/loadable.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { type DirectoryEntry, type DirectoryKind, kindLabels, requests } from '../../state/directory.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { mapped } from '../../state/loading/resource.ts';

type CreateEntryProps = {
  kind: DirectoryKind;
  /** The new entry's partner or account, if that's already known. */
  parent: DirectoryEntry | null;
  session: SessionView;
  onCreated: (entry: DirectoryEntry) => void;
  onClose: () => void;
};

export function CreateEntry({ kind, parent, session, onCreated, onClose }: CreateEntryProps) {
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

export function RenameEntry({ entry: { kind, id, name: current, partner, account }, onRenamed, onClose }: RenameEntryProps) {
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
export function DeleteEntry({ entry: { kind, id, name }, onDeleted, onClose }: DeleteEntryProps) {
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
