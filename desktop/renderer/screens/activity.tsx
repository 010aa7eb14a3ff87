import type { ActivityView } from '#contract/console/activity.ts';
import { DayRange } from '../components/dates.tsx';
import { ExportAllButton } from '../components/export-buttons.tsx';
import { Empty, MoreButton, ResetButton, useFilters, useList } from '../components/list.tsx';
import { ListPage } from '../components/page.tsx';
import { Clip, type Column, DataTable } from '../components/table.tsx';
import { Moment } from '../components/time.tsx';
import { FilterSelect } from '../components/toolbar.tsx';
import {
  type ActivityEvent,
  actorName,
  addressLabel,
  concernsOnlyActor,
  describeDetail,
  describeSubject,
  labelActors,
  mergeActivity,
} from '../state/activity.ts';
import { listDays } from '../state/clock.ts';
import { day, defineFilters, text } from '../state/filters.ts';
import { describeLoaded } from '../state/format.ts';
import { actionLabel, capitalized } from '../state/labels.ts';
import type { ScreenProps } from '../state/navigation.ts';

type EventColumn = Column<ActivityEvent, string>;

const columnsFor = (viewerId: string): EventColumn[] => [
  {
    name: 'what',
    label: 'What',
    width: 'name',
    cell: ({ action, subject, detail }) => (
      <Clip>
        <span class="verb">{capitalized(actionLabel(action))}</span>
        {!concernsOnlyActor(action) && (
          <>
            {' '}
            <bdi>{describeSubject(action, subject.name)}</bdi>
          </>
        )}
        {detail !== undefined && <span class="faint"> ({describeDetail(detail)})</span>}
      </Clip>
    ),
  },
  {
    name: 'who',
    label: 'Who',
    width: 'person',
    cell: (event) => (
      <>
        {event.actor?.id === viewerId ? (
          <span class="tag you">You</span>
        ) : (
          <Clip>
            {actorName(event, viewerId)} {event.actor?.email !== undefined && <span class="faint">{event.actor.email}</span>}
          </Clip>
        )}
        <span class="second-line">
          <Clip>{addressLabel(event.address)}</Clip>
        </span>
      </>
    ),
  },
  {
    name: 'from',
    label: 'From',
    width: 'moment',
    needs: 'medium',
    cell: ({ address }) => <Clip class="faint">{addressLabel(address)}</Clip>,
  },
  { name: 'when', label: 'When', width: 'moment', cell: ({ at }) => <Moment at={at} isInTable /> },
];

const screenFilters = defineFilters('activity', [], { actor: text(), action: text(), from: day(), to: day() });
type Filters = typeof screenFilters.initial;

/** Shows the audit events in the viewer's scope. The core filters them, because the page has loaded only some of them. */
export function Activity({ session, title }: ScreenProps) {
  const viewerId = session.viewer.id;
  const [filters, change] = useFilters(screenFilters);
  const filter = { ...filters, ...listDays(filters.from, filters.to) };
  const list = useList<ActivityView>({
    key: `activity/${JSON.stringify(filter)}`,
    load: (cursor) => window.callkey.request('listActivity', { ...filter, cursor }),
    merge: mergeActivity,
  });
  const { view } = list.state.value;
  const events = view?.events ?? [];
  const isFiltered = Object.values(filters).some((value) => value !== '');
  const reset = isFiltered ? { label: 'Show all activity', onReset: () => change(screenFilters.initial) } : null;
  return (
    <ListPage
      title={title}
      actions={
        events.length > 0 && <ExportAllButton request={{ name: 'exportActivity', input: filter, file: 'activity.csv' }} noun="event" />
      }
      head={<Toolbar filters={filters} viewerId={viewerId} onChange={change} />}
      list={list}
      foot={
        view !== null &&
        events.length > 0 && (
          <>
            <span role="status">{describeLoaded(events.length, view, 'event')}, newest first</span>
            <MoreButton list={list} label="Show older activity" />
          </>
        )
      }
      noun="activity"
      reset={reset}
    >
      {() =>
        events.length > 0 ? (
          <DataTable label="Activity" columns={columnsFor(viewerId)} rows={events} getId={({ id }) => id} getName={({ id }) => id} />
        ) : reset ? (
          <Empty title="No matching activity">
            <ResetButton reset={reset} />
          </Empty>
        ) : (
          <Empty title="No activity yet">
            <p>This list will show who created, revoked or deleted keys and users, when, and from which address.</p>
          </Empty>
        )
      }
    </ListPage>
  );
}

const facetsMs = 60_000;

type ToolbarProps = { filters: Filters; viewerId: string; onChange: (changes: Partial<Filters>) => void };

function Toolbar({ filters: { actor, action, from, to }, viewerId, onChange }: ToolbarProps) {
  const load = () => window.callkey.request('listActivityFacets', {});
  const { view: facets } = useList({ key: 'activity-facets', every: facetsMs, load }).state.value;
  const actors = labelActors(facets?.actors ?? [], viewerId);
  const actions = facets?.actions.map((name) => [name, capitalized(actionLabel(name))] as const) ?? [];
  return (
    <search class="toolbar">
      <FilterSelect
        label="User"
        value={actor}
        options={withChosen('All users', 'Selected user', actor, actors)}
        onChange={(chosen) => onChange({ actor: chosen })}
      />
      <FilterSelect
        label="Action"
        value={action}
        options={withChosen('All actions', 'Selected action', action, actions)}
        onChange={(chosen) => onChange({ action: chosen })}
      />
      <DayRange from={from} to={to} onChange={onChange} />
    </search>
  );
}

type Options = readonly (readonly [string, string])[];

/** Sorts options, and adds the chosen value, because the address may contain one that isn't in the viewer's activity. */
function withChosen(all: string, selected: string, chosen: string, options: Options): Options {
  const isOffered = chosen === '' || options.some(([id]) => id === chosen);
  return [['', all], ...(isOffered ? [] : [[chosen, selected] as const]), ...options.toSorted(([, a], [, b]) => a.localeCompare(b))];
}
