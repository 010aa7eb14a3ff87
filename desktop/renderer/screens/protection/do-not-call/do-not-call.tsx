import { useState } from 'preact/hooks';
import { type DoNotCallEntryView, doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import type { DoNotCallView } from '#contract/protection/protection.ts';
import { toPhonePrefix } from '#contract/text/text.ts';
import { Icon } from '../../../components/icons.tsx';
import { Empty, Loadable } from '../../../components/loadable.tsx';
import { Page } from '../../../components/page.tsx';
import { Clip } from '../../../components/table/clip.tsx';
import { DataTable } from '../../../components/table/data-table.tsx';
import { ExportAllButton } from '../../../components/table/export-all-button.tsx';
import { MoreButton } from '../../../components/table/more-button.tsx';
import type { Column } from '../../../components/table/table-model.ts';
import { Day } from '../../../components/time.tsx';
import { usePages } from '../../../components/use-pages.ts';
import { announce } from '../../../state/announcement.ts';
import { pluralize } from '../../../state/format/format.ts';
import type { Pages } from '../../../state/loading/pages.ts';
import type { TabProps } from '../tab-props.ts';
import { AddNumbers } from './add-numbers.tsx';
import { describeScope, describeSource } from './entries.ts';
import { OptOuts } from './opt-outs.tsx';
import { RemoveNumber } from './remove-number.tsx';

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
