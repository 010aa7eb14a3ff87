import { useMemo, useState } from 'preact/hooks';
import type { AccountsView } from '#contract/console/directory.ts';
import {
  type DoNotCallEntryView,
  type DoNotCallReason,
  doNotCallReasonLabels,
  doNotCallReasons,
} from '#contract/protection/do-not-call.ts';
import { type DoNotCallView, optOutScopes } from '#contract/protection/protection.ts';
import { toPhonePrefix } from '#contract/text/text.ts';
import { firstPage } from '../../components/choose.tsx';
import { Facts } from '../../components/details.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ExportAllButton } from '../../components/export-buttons.tsx';
import { Field, FormActions, FormError, TextField, useAction } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, Loadable, MoreButton, usePages, useResource } from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { Clip, type Column, DataTable } from '../../components/table.tsx';
import { Day } from '../../components/time.tsx';
import { announce } from '../../state/announcement.ts';
import { ownZone } from '../../state/clock.ts';
import { fieldError, generalError } from '../../state/failure-text.ts';
import { pluralize } from '../../state/format.ts';
import type { Pages } from '../../state/list.ts';
import { addChecked, describeAdded, type ReadFile, readFile, readNumbers } from '../../state/pasted-numbers.ts';
import { type NamedScope, ScopeSelect, type TabProps } from './tenancy.tsx';

/** Shows the numbers that must not be called, and lets users find, add, remove and export them. */
export function DoNotCall({ title, home, canChange, view: { search }, onView, tabs, check }: TabProps) {
  const prefix = toPhonePrefix(search);
  const { resource, pages, isWhole } = usePages('do-not-call', entryPages, prefix ?? search.trim());
  const [isAdding, setAdding] = useState(false);
  const [isSettingOptOuts, setSettingOptOuts] = useState(false);
  const [removing, setRemoving] = useState<DoNotCallEntryView | null>(null);
  const entries = resource.state.value.value?.entries ?? [];
  const isFiltered = isWhole && search.trim() !== '';
  const matches = isFiltered ? entries.filter(({ phone }) => prefix !== null && phone.startsWith(prefix)) : entries;
  const changed = (text: string) => {
    setAdding(false);
    setRemoving(null);
    announce(text);
    void resource.refresh();
  };
  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {check}
            {canChange && home.kind === 'partner' && (
              <button type="button" onClick={() => setSettingOptOuts(true)}>
                Opt-outs…
              </button>
            )}
            <button type="button" class="primary" onClick={() => setAdding(true)}>
              <Icon name="plus" /> Add numbers
            </button>
          </>
        }
        head={
          <>
            {tabs}
            <search class="toolbar">
              <label class="grow">
                <span class="visually-hidden">Search by number</span>
                <input
                  type="search"
                  inputMode="tel"
                  placeholder="Search by the start of a number, such as +49 30"
                  value={search}
                  onInput={({ currentTarget }) => onView({ search: currentTarget.value })}
                />
              </label>
              <ExportAllButton request={{ name: 'exportDoNotCall', input: { search }, file: 'do-not-call.csv' }} noun="number" />
            </search>
          </>
        }
        resource={resource}
        foot={
          <>
            <span role="status">
              {pluralize(matches.length, 'number')}
              {resource.state.value.value?.nextCursor && ' so far'}
            </span>
            <MoreButton resource={resource} pages={pages} label="Show more numbers" />
          </>
        }
      >
        <Loadable resource={resource} noun="the do-not-call list" isInPage>
          {() =>
            matches.length === 0 ? (
              <Empty title={search.trim() === '' ? 'No numbers yet' : 'No matching numbers'}>
                <p>
                  {search.trim() === ''
                    ? 'Calls to numbers on this list are refused. Queued calls to them end as blocked.'
                    : 'To find a number, start with its country code, such as +49 30.'}
                </p>
              </Empty>
            ) : (
              <EntryTable entries={matches} onRemove={canChange ? setRemoving : null} />
            )
          }
        </Loadable>
      </Page>
      {isAdding && <AddNumbers home={home} onAdded={changed} onClose={() => setAdding(false)} />}
      {isSettingOptOuts && <OptOuts onClose={() => setSettingOptOuts(false)} />}
      {removing && (
        <RemoveNumber
          entry={removing}
          onRemoved={() => changed(`${removing.phone} may be called again, unless another list or rule forbids it.`)}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  );
}

function entryPages(search: string): Pages<DoNotCallView> {
  return {
    load: (cursor) => window.callkey.request('listDoNotCall', { search, cursor }),
    join: (view, next) => ({ entries: [...view.entries, ...next.entries], nextCursor: next.nextCursor }),
    count: ({ entries }) => entries.length,
    empty: { entries: [], nextCursor: null },
  };
}

type EntryColumn = Column<DoNotCallEntryView, 'phone' | 'reason' | 'scope' | 'added' | 'by' | 'ends'>;

const columns: readonly EntryColumn[] = [
  { name: 'phone', label: 'Number', width: 'name', cell: ({ phone, note }) => <NumberAndNote phone={phone} note={note} /> },
  { name: 'reason', label: 'Reason', width: 'text', cell: ({ reason }) => <Clip>{doNotCallReasonLabels[reason]}</Clip> },
  { name: 'scope', label: 'For', width: 'text', needs: 'medium', cell: ({ scope }) => <Clip>{describeScope(scope)}</Clip> },
  { name: 'by', label: 'Added by', width: 'key', needs: 'wide', cell: (entry) => <Clip>{describeSource(entry)}</Clip> },
  { name: 'added', label: 'Added', width: 'day', cell: ({ createdAt }) => <Day at={createdAt} /> },
  {
    name: 'ends',
    label: 'Ends',
    width: 'day',
    cell: ({ endsAt }) => (endsAt === null ? <span class="faint">Never</span> : <Day at={endsAt} />),
  },
];

function NumberAndNote({ phone, note }: Pick<DoNotCallEntryView, 'phone' | 'note'>) {
  return (
    <span class="line">
      {phone}
      {note !== null && <Clip class="faint">{note}</Clip>}
    </span>
  );
}

function EntryTable({
  entries,
  onRemove,
}: {
  entries: readonly DoNotCallEntryView[];
  onRemove: ((entry: DoNotCallEntryView) => void) | null;
}) {
  return (
    <DataTable
      label="Numbers that must not be called"
      columns={columns}
      rows={entries}
      getId={({ id }) => id}
      getName={({ phone }) => phone}
      {...(onRemove && { action: { icon: 'trash', label: ({ phone }: DoNotCallEntryView) => `Remove ${phone}`, run: onRemove } })}
    />
  );
}

type AddNumbersProps = { home: NamedScope; onAdded: (message: string) => void; onClose: () => void };

/** Adds one number, a pasted list, or the numbers in a file. */
function AddNumbers({ home, onAdded, onClose }: AddNumbersProps) {
  const [text, setText] = useState('');
  const [file, setFile] = useState<File | null>(null);
  const [column, setColumn] = useState('');
  const [fileRead, setFileRead] = useState<ReadFile | null>(null);
  const [country, setCountry] = useState('');
  const [reason, setReason] = useState<DoNotCallReason>('asked');
  const [note, setNote] = useState('');
  const [until, setUntil] = useState('');
  const [scope, setScope] = useState(home);
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const { numbers, problems } = useMemo(() => readNumbers(text), [text]);
  const chosenCountry = country.trim().toUpperCase() || undefined;
  const read = async (from: File, name: string) => {
    setFile(from);
    setColumn(name);
    const result = await readFile(from, name);
    setFileRead(result);
    if (result.text !== null) setText(result.text);
  };
  const fields = {
    reason,
    ...(chosenCountry !== undefined && { country: chosenCountry }),
    ...(note.trim() !== '' && { note }),
    ...(until !== '' && { until, timeZone: ownZone.value }),
    ...(scope.kind === 'partner' ? { partnerId: scope.id } : { accountId: scope.id }),
  };
  return (
    <Dialog title="Add to the do-not-call list" onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(
            () => addChecked(numbers, problems, chosenCountry, (phones) => window.callkey.request('addDoNotCall', { phones, ...fields })),
            (added) => onAdded(describeAdded(added)),
          );
        }}
      >
        <Field
          label="Phone numbers"
          hint="In any common format, on separate lines or separated by commas, semicolons or tabs. You can paste a spreadsheet column."
          error={fieldError(failure, 'phones')}
          aside={<span class="counter">{numbers.length === 0 ? '' : pluralize(numbers.length, 'number')}</span>}
        >
          {(binding) => (
            <textarea
              {...binding}
              rows={5}
              spellcheck={false}
              data-autofocus
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          )}
        </Field>
        <Field
          label="Or choose a CSV file"
          hint={fileRead?.note || 'The column is found by its header. All numbers get the reason, note and end date below.'}
          error={fileRead?.problem ?? null}
        >
          {(binding) => (
            <input
              {...binding}
              type="file"
              accept=".csv,.tsv,.txt,text/csv,text/plain"
              onChange={({ currentTarget }) => {
                const [chosen] = currentTarget.files ?? [];
                if (chosen) void read(chosen, '');
              }}
            />
          )}
        </Field>
        {file && fileRead && fileRead.columns.length > 1 && (
          <Field label="Column of the file">
            {(binding) => (
              <select {...binding} value={column} onChange={({ currentTarget }) => void read(file, currentTarget.value)}>
                <option value="">Found by its header</option>
                {fileRead.columns.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <TextField
          label="Country of numbers without a country code"
          hint="Two letters, such as DE. Leave it empty if all numbers start with +."
          error={fieldError(failure, 'country')}
          type="text"
          autocomplete="off"
          value={country}
          onInput={setCountry}
        />
        <Field label="Reason" error={fieldError(failure, 'reason')}>
          {(binding) => (
            <select
              {...binding}
              value={reason}
              onChange={({ currentTarget }) => setReason(doNotCallReasons.find((each) => each === currentTarget.value) ?? 'asked')}
            >
              {doNotCallReasons.map((each) => (
                <option key={each} value={each}>
                  {doNotCallReasonLabels[each]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextField
          label="Note (optional)"
          error={fieldError(failure, 'note')}
          type="text"
          autocomplete="off"
          value={note}
          onInput={setNote}
        />
        <Field
          label="Ends (optional)"
          hint="The last day. Leave it empty for an entry that doesn’t end."
          error={fieldError(failure, 'until')}
        >
          {(binding) => <input {...binding} type="date" value={until} onInput={({ currentTarget }) => setUntil(currentTarget.value)} />}
        </Field>
        {home.kind === 'partner' && (
          <div class="field">
            <span class="label">For</span>
            <ScopeSelect home={home} kinds={['partner', 'account']} chosen={scope} onChoose={setScope} />
            <p class="hint">
              {scope.kind === 'partner' ? 'No account of this partner will call these numbers.' : 'Other accounts can still call them.'}
            </p>
          </div>
        )}
        <FormError text={generalError(failure, ['phones', 'country', 'reason', 'note', 'until'])} />
        <FormActions verb="Add" verbing="Adding…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

type RemoveNumberProps = { entry: DoNotCallEntryView; onRemoved: () => void; onClose: () => void };

/** Removes a number from the do-not-call list. The reason is stored in the audit log. */
function RemoveNumber({ entry, onRemoved, onClose }: RemoveNumberProps) {
  const [reason, setReason] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  return (
    <Dialog
      title={`Remove ${entry.phone}?`}
      lead="Calls to this number will be accepted again immediately, unless another list or rule forbids them."
      isAlert
      onDismiss={close}
    >
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => window.callkey.request('liftDoNotCall', { id: entry.id, reason }), onRemoved);
        }}
      >
        <Facts
          facts={[
            ['Reason', doNotCallReasonLabels[entry.reason]],
            ['For', <bdi key="scope">{entry.scope.name}</bdi>],
            ['Added by', <bdi key="by">{describeSource(entry)}</bdi>],
            ['Added', <Day key="added" at={entry.createdAt} />],
            ...(entry.note === null ? [] : [['Note', <bdi key="note">{entry.note}</bdi>] as const]),
          ]}
        />
        <TextField
          label="Why may it be called again?"
          hint="Shown on the Activity screen."
          error={fieldError(failure, 'reason')}
          type="text"
          autocomplete="off"
          value={reason}
          onInput={setReason}
          autofocus
        />
        <FormError text={generalError(failure, ['reason'])} />
        <FormActions verb="Remove" verbing="Removing…" isDanger isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

/** Lets users choose whether opt-outs during an account's calls apply to this account only or to all of its partner's accounts. */
function OptOuts({ onClose }: { onClose: () => void }) {
  const accounts = useResource(() => window.callkey.request('listAccounts', firstPage));
  return (
    <Dialog
      title="Opt-outs during calls"
      lead="A provider can report that someone doesn’t want to be called again. Choose who must stop calling them."
      onDismiss={onClose}
    >
      <Loadable resource={accounts} noun="accounts">
        {(view) => <ChooseAccount view={view} onClose={onClose} />}
      </Loadable>
    </Dialog>
  );
}

function ChooseAccount({ view: { accounts }, onClose }: { view: AccountsView; onClose: () => void }) {
  const [first] = accounts;
  const [chosen, setChosen] = useState<NamedScope | null>(first ? { kind: 'account', ...first } : null);
  if (!chosen) return <p>There are no accounts yet.</p>;
  return (
    <>
      <div class="field">
        <span class="label">In calls from</span>
        <ScopeSelect home={null} kinds={['account']} chosen={chosen} onChoose={setChosen} />
      </div>
      <OptOutForm key={chosen.id} account={chosen} onClose={onClose} />
    </>
  );
}

const labels = { account: 'Only this account stops calling them', partner: 'All accounts of the partner stop calling them' } as const;

function OptOutForm({ account: { id, name }, onClose }: { account: NamedScope; onClose: () => void }) {
  const resource = useResource(() => window.callkey.request('showOptOuts', { id }));
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const [choice, setChoice] = useState<(typeof optOutScopes)[number] | null>(null);
  return (
    <Loadable resource={resource} noun="the setting">
      {({ listedFor }) => (
        <form
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void run(
              () => window.callkey.request('setOptOuts', { id, listedFor: choice ?? listedFor }),
              () => {
                announce(`The setting for opt-outs during calls from ${name} was changed.`);
                onClose();
              },
            );
          }}
        >
          <fieldset>
            <legend>If someone opts out</legend>
            {optOutScopes.map((scope) => (
              <label key={scope} class="check">
                <input type="radio" name="opt-outs" checked={(choice ?? listedFor) === scope} onChange={() => setChoice(scope)} />
                {labels[scope]}
              </label>
            ))}
          </fieldset>
          <FormError text={generalError(failure, [])} />
          <FormActions verb="Save" verbing="Saving…" isBusy={isBusy} onCancel={unlessBusy(onClose)} />
        </form>
      )}
    </Loadable>
  );
}

/** Says who must not call the number of an entry. */
function describeScope({ kind, name }: DoNotCallEntryView['scope']): string {
  return kind === 'partner' ? `${name} and all its accounts` : name;
}

/** Says who added an entry, or that it came from a call. */
function describeSource({ source, createdBy }: Pick<DoNotCallEntryView, 'source' | 'createdBy'>): string {
  if (source === 'outcome') return 'Opted out during a call';
  return createdBy?.name ?? 'Operator';
}
