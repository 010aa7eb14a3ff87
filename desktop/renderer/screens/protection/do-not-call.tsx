import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import {
  type DoNotCallEntryView,
  type DoNotCallReason,
  doNotCallReasonLabels,
  doNotCallReasons,
} from '#contract/protection/do-not-call.ts';
import { type DoNotCallView, optOutScopes } from '#contract/protection/protection.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { toPhonePrefix } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { ChooseTenancy } from '../../components/choose.tsx';
import { DayInput } from '../../components/dates.tsx';
import { CloseAction, Dialog } from '../../components/dialog.tsx';
import { ExportAllButton } from '../../components/export-buttons.tsx';
import { Field, Form, FormActions, FormDialog, FormError, SearchInput, SelectField, TextField } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Count, Empty, Loadable, useDialogs, useList, useSearchedList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { Clip, type Column, DataTable, SelectionBar, ShortTable } from '../../components/table.tsx';
import { Day } from '../../components/time.tsx';
import { announce } from '../../state/announcement.ts';
import { ownZone } from '../../state/clock.ts';
import { dayProblem, isDay, today } from '../../state/days.ts';
import { isNotFound, type LookedUp } from '../../state/failure-text.ts';
import { type Sort, type SortValue, shorten, sortAfterPress, sorted } from '../../state/format.ts';
import {
  type AddedNumbers,
  addChecked,
  describeAdded,
  type ReadFile,
  readFile,
  readNumbers,
  shownLines,
} from '../../state/pasted-numbers.ts';
import { isCountry, type Tenancy } from '../../state/protection.ts';
import { session } from '../../state/session.ts';
import type { TabProps } from './tenancy.tsx';

type NumberDialog =
  | { name: 'add' | 'opt-outs' }
  | { name: 'added'; added: AddedNumbers }
  | { name: 'remove'; entries: readonly DoNotCallEntryView[] };

export function DoNotCall({ title, own, canChange, filters: { search }, onChange, tabs, actions }: TabProps) {
  const prefix = toPhonePrefix(search);
  const { list, isWhole } = useSearchedList<DoNotCallView>({
    key: 'do-not-call',
    search: prefix ?? search.trim(),
    load: (typed, cursor) => window.callkey.request('listDoNotCall', { search: typed, cursor }),
  });
  const { dialog, open, close, done } = useDialogs<NumberDialog>(list);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [sort, setSort] = useState<Sort<EntryColumn['name']>>({ column: 'added', isDescending: true });
  const { view } = list.state.value;
  const entries = view?.entries ?? [];
  const isFiltered = isWhole && search.trim() !== '';
  const matches = isFiltered ? entries.filter(({ phone }) => prefix !== null && phone.startsWith(prefix)) : entries;
  // The core sorts a longer list, of which only a part is loaded.
  const rows = isWhole ? sorted(matches, sortValues[sort.column], sort.isDescending) : matches;
  const selectedEntries = rows.filter(({ id }) => selected.has(id));
  return (
    <>
      <ListPage
        title={title}
        actions={
          <>
            {actions(own)}
            {canChange && own.kind === 'partner' && (
              <button type="button" onClick={() => open({ name: 'opt-outs' })}>
                Opt-outs…
              </button>
            )}
            <button type="button" class="primary" onClick={() => open({ name: 'add' })}>
              <Icon name="plus" /> Add numbers
            </button>
          </>
        }
        head={
          <>
            {tabs}
            {(entries.length > 0 || search !== '') && (
              <search class="toolbar">
                <SearchInput
                  label="Search by number"
                  placeholder="Start of a number, such as +49 30"
                  inputMode="tel"
                  value={search}
                  onInput={(typed) => onChange({ search: typed })}
                />
                <ExportAllButton request={{ name: 'exportDoNotCall', input: { search }, file: 'do-not-call.csv' }} noun="number" />
              </search>
            )}
          </>
        }
        list={list}
        foot={
          <>
            <Count list={list} count={matches.length} noun="number" of={isFiltered ? null : view} />
            {own.kind === 'account' && session.value?.viewer.userType === 'staff' && (
              <span>To set who stops after an opt-out, select the partner.</span>
            )}
            <SelectionBar
              count={selectedEntries.length}
              noun="number"
              verb="Remove"
              onClear={() => setSelected(new Set())}
              onAct={() => open({ name: 'remove', entries: selectedEntries })}
            />
          </>
        }
        noun="the do-not-call list"
      >
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
            <DataTable
              label="Numbers that must not be called"
              columns={columns}
              rows={rows}
              getId={({ id }) => id}
              getName={({ phone }) => phone}
              {...(isWhole && {
                sort,
                onSort: (column: EntryColumn['name']) => setSort(sortAfterPress(sort, column, column === 'added')),
              })}
              {...(canChange && {
                selection: { ids: selected, onChange: setSelected },
                action: {
                  icon: 'trash',
                  label: ({ phone }: DoNotCallEntryView) => `Remove ${phone}`,
                  run: (entry: DoNotCallEntryView) => open({ name: 'remove', entries: [entry] }),
                },
              })}
            />
          )
        }
      </ListPage>
      {dialog?.name === 'add' && (
        <AddNumbers
          own={own}
          onAdded={(added) => {
            const isOne = added.lines.length === 1;
            void done(isOne ? describeAdded(added) : '');
            if (!isOne) open({ name: 'added', added });
          }}
          onClose={close}
        />
      )}
      {dialog?.name === 'added' && (
        <Dialog title="Result of each line" lead={describeAdded(dialog.added)} onDismiss={close}>
          <ShortTable
            head={[['Number'], ['Line', 'number'], ['Result']]}
            rows={dialog.added.lines.slice(0, shownLines).map(({ line, text, result }) => [shorten(text), line, result])}
          />
          {dialog.added.lines.length > shownLines && <p class="hint">and {counted(dialog.added.lines.length - shownLines, 'more line')}</p>}
          <CloseAction onClose={close} />
        </Dialog>
      )}
      {dialog?.name === 'opt-outs' && <OptOuts onClose={close} />}
      {dialog?.name === 'remove' && (
        <RemoveNumbers
          entries={dialog.entries}
          onRemoved={() => {
            setSelected(new Set());
            const [first, ...others] = dialog.entries;
            const what = others.length === 0 ? first?.phone : counted(dialog.entries.length, 'number');
            void done(`${what} may be called again, unless another list or rule forbids it.`);
          }}
          onClose={close}
        />
      )}
    </>
  );
}

type EntryColumn = Column<DoNotCallEntryView, 'phone' | 'reason' | 'scope' | 'added' | 'by' | 'ends'>;

const columns: readonly EntryColumn[] = [
  { name: 'phone', label: 'Number', width: 'name', cell: ({ phone, note }) => <NumberAndNote phone={phone} note={note} /> },
  { name: 'reason', label: 'Reason', width: 'text', cell: ({ reason }) => <Clip>{doNotCallReasonLabels[reason]}</Clip> },
  { name: 'scope', label: 'For', width: 'key', needs: 'medium', cell: ({ scope }) => <Clip>{describeScope(scope)}</Clip> },
  { name: 'by', label: 'Added by', width: 'key', needs: 'wide', cell: (entry) => <Clip>{describeSource(entry)}</Clip> },
  { name: 'added', label: 'Added', width: 'day', cell: ({ createdAt }) => <Day at={createdAt} /> },
  { name: 'ends', label: 'Ends', width: 'day', cell: ({ endsAt }) => <Day at={endsAt} mayBeFuture /> },
];

const sortValues: Readonly<Record<EntryColumn['name'], (entry: DoNotCallEntryView) => SortValue>> = {
  phone: ({ phone }) => phone,
  reason: ({ reason }) => doNotCallReasonLabels[reason],
  scope: ({ scope }) => describeScope(scope),
  added: ({ createdAt }) => Date.parse(createdAt),
  by: describeSource,
  ends: ({ endsAt }) => (endsAt === null ? null : Date.parse(endsAt)),
};

function NumberAndNote({ phone, note }: Pick<DoNotCallEntryView, 'phone' | 'note'>) {
  return (
    <>
      {phone}
      {note !== null && <Clip class="caption">{note}</Clip>}
    </>
  );
}

type AddNumbersProps = { own: Tenancy; onAdded: (added: AddedNumbers) => void; onClose: () => void };

function AddNumbers({ own, onAdded, onClose }: AddNumbersProps) {
  const [text, setText] = useState('');
  const [file, setFile] = useState<File | null>(null);
  const [column, setColumn] = useState('');
  const [fileRead, setFileRead] = useState<ReadFile | null>(null);
  const [country, setCountry] = useState('');
  const [reason, setReason] = useState<DoNotCallReason>('asked');
  const [note, setNote] = useState('');
  const [until, setUntil] = useState('');
  const [tenancy, setTenancy] = useState(own);
  const written = useMemo(() => readNumbers(text), [text]);
  const count = written.numbers.length;
  const [added, setAdded] = useState(0);
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
    ...(tenancy.kind === 'partner' ? { partnerId: tenancy.id } : { accountId: tenancy.id }),
  };
  return (
    <FormDialog
      title="Add to the do-not-call list"
      problems={{
        country: chosenCountry === undefined || isCountry(chosenCountry) ? null : 'Enter the two letters of a country, such as DE.',
        until: until === '' || isDay(until) ? null : dayProblem,
      }}
      act={() => {
        setAdded(0);
        return addChecked(written, chosenCountry, async (phones) => {
          const result = await window.callkey.request('addDoNotCall', { phones, ...fields });
          if (result.ok) setAdded((before) => before + phones.length);
          return result;
        });
      }}
      onDone={onAdded}
      verb="Add"
      verbing="Adding…"
      onClose={onClose}
    >
      <Field
        name="phones"
        label="Phone numbers"
        hint="In any common format, on separate lines or separated by commas, semicolons or tabs. You can paste a spreadsheet column."
        aside={<span class="counter">{count === 0 ? '' : counted(count, 'number')}</span>}
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
        <SelectField
          label="Column of the file"
          value={column}
          options={[['', 'Found by its header'], ...fileRead.columns.map((each) => [each, each] as const)]}
          onChange={(chosen) => void read(file, chosen)}
        />
      )}
      <TextField
        name="country"
        label="Country of numbers without a country code"
        hint="Two letters, such as DE. Leave it empty if all numbers start with +."
        value={country}
        onInput={setCountry}
      />
      <SelectField
        name="reason"
        label="Reason"
        value={reason}
        options={doNotCallReasons.map((each) => [each, doNotCallReasonLabels[each]])}
        onChange={setReason}
      />
      <TextField name="note" label="Note (optional)" value={note} onInput={setNote} />
      <Field name="until" label="Ends (optional)" hint="The last day. Leave it empty for an entry that doesn’t end.">
        {(binding) => <DayInput {...binding} min={today()} value={until} onInput={setUntil} />}
      </Field>
      {own.kind === 'partner' && (
        <div class="field">
          <span class="label">For</span>
          <ChooseTenancy
            title="Choose whose list to add to"
            own={own}
            kinds={['partner', 'account']}
            chosen={tenancy}
            onChoose={setTenancy}
          />
          <p class="hint">
            {tenancy.kind === 'partner' ? 'No account of this partner will call these numbers.' : 'Other accounts can still call them.'}
          </p>
        </div>
      )}
      {added > 0 && (
        <p class="hint" role="status">
          Added {formatCount(added)} of {counted(count, 'number')} so far. If the rest fails, add all of them again: no number is listed
          twice.
        </p>
      )}
    </FormDialog>
  );
}

type RemoveNumbersProps = { entries: readonly DoNotCallEntryView[]; onRemoved: () => void; onClose: () => void };

function RemoveNumbers({ entries, onRemoved, onClose }: RemoveNumbersProps) {
  const [reason, setReason] = useState('');
  const [entry, ...others] = entries;
  const isOne = others.length === 0;
  return (
    <FormDialog
      title={isOne ? `Remove ${entry?.phone}?` : `Remove ${counted(entries.length, 'number')}?`}
      lead={`Calls to ${isOne ? 'this number' : 'these numbers'} will be accepted again immediately, unless another list or rule forbids them.`}
      isAlert
      isDanger
      isWide
      act={() => liftAll(entries, reason)}
      lookUp={() => lookUpLifted(entries)}
      onDone={onRemoved}
      verb={isOne ? 'Remove' : `Remove ${counted(entries.length, 'number')}`}
      verbing="Removing…"
      onClose={onClose}
    >
      <ShortTable
        head={[['Number'], ['Reason'], ['For'], ['Added', 'short']]}
        rows={entries.map((each) => [
          each.phone,
          captioned(doNotCallReasonLabels[each.reason], each.note),
          describeScope(each.scope),
          captioned(<Day at={each.createdAt} />, describeSource(each)),
        ])}
      />
      <TextField
        name="reason"
        label={isOne ? 'Why may it be called again?' : 'Why may they be called again?'}
        hint="Shown on the Activity screen."
        value={reason}
        onInput={setReason}
        autofocus
      />
    </FormDialog>
  );
}

function captioned(text: ComponentChildren, caption: string | null) {
  return (
    <>
      {text}
      {caption !== null && <bdi class="caption">{caption}</bdi>}
    </>
  );
}

/** Removes one after the other, so that what was removed before a failure stays removed. */
async function liftAll(entries: readonly DoNotCallEntryView[], reason: string): Promise<Result<null>> {
  for (const { id } of entries) {
    const result = await window.callkey.request('liftDoNotCall', { id, reason });
    // Someone else has already removed it.
    if (!result.ok && !(entries.length > 1 && isNotFound(result.failure))) return result;
  }
  return { ok: true, value: null };
}

async function lookUpLifted(entries: readonly DoNotCallEntryView[]): Promise<LookedUp<null>> {
  for (const { id, phone } of entries) {
    const found = await window.callkey.request('listDoNotCall', { search: phone, cursor: null });
    if (!found.ok) return found;
    if (found.value.entries.some((entry) => entry.id === id)) return { ok: true, value: null };
  }
  return { ok: true, value: { done: null } };
}

function OptOuts({ onClose }: { onClose: () => void }) {
  const accounts = useList({
    key: 'accounts',
    every: null,
    load: () => window.callkey.request('listAccounts', { search: '', cursor: null }),
  });
  const [chosen, choose] = useState<Tenancy | null>(null);
  return (
    <Dialog
      title="Opt-outs during calls"
      lead="A provider can report that someone doesn’t want to be called again. Choose who must stop calling them."
      onDismiss={onClose}
    >
      <Loadable list={accounts} noun="accounts">
        {({ accounts: [first] }) => {
          const account = chosen ?? (first ? { kind: 'account' as const, ...first } : null);
          if (!account) return <p>There are no accounts yet.</p>;
          return (
            <>
              <div class="field">
                <span class="label">In calls from</span>
                <ChooseTenancy title="Choose an account" own={null} kinds={['account']} chosen={account} onChoose={choose} />
              </div>
              <OptOutForm key={account.id} account={account} onClose={onClose} />
            </>
          );
        }}
      </Loadable>
    </Dialog>
  );
}

const optOutLabels = { account: 'Only this account stops calling them', partner: 'All accounts of the partner stop calling them' } as const;

function OptOutForm({ account: { id, name }, onClose }: { account: Tenancy; onClose: () => void }) {
  const list = useList({ key: `opt-outs/${id}`, every: null, load: () => window.callkey.request('showOptOuts', { id }) });
  const [choice, setChoice] = useState<(typeof optOutScopes)[number] | null>(null);
  return (
    <Loadable list={list} noun="the setting">
      {({ listedFor }) => (
        <Form
          act={() => window.callkey.request('setOptOuts', { id, listedFor: choice ?? listedFor })}
          onDone={() => {
            announce(`The setting for opt-outs during calls from ${name} was changed.`);
            onClose();
          }}
        >
          <fieldset>
            <legend>If someone opts out</legend>
            {optOutScopes.map((scope) => (
              <label key={scope} class="check">
                <input type="radio" name="opt-outs" checked={(choice ?? listedFor) === scope} onChange={() => setChoice(scope)} />
                {optOutLabels[scope]}
              </label>
            ))}
          </fieldset>
          <FormError />
          <FormActions verb="Save" verbing="Saving…" onCancel={onClose} />
        </Form>
      )}
    </Loadable>
  );
}

/** Says who must not call the number of an entry. */
function describeScope({ kind, name }: DoNotCallEntryView['scope']): string {
  return kind === 'partner' ? 'All accounts' : name;
}

/** Says who added an entry, or that it came from a call. */
function describeSource({ source, createdBy }: Pick<DoNotCallEntryView, 'source' | 'createdBy'>): string {
  if (source === 'outcome') return 'Opted out during a call';
  return createdBy?.name ?? 'Operator';
}
