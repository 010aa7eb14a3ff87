import type { ActivityView } from '#contract/console/activity.ts';
import type { RequestInput, Result } from '../../ipc.ts';
import { DayRange } from '../components/charts.tsx';
import { ExportAllButton } from '../components/export-buttons.tsx';
import { Empty, Loadable, MoreButton, type Reset, useFreshResource, useView } from '../components/list.tsx';
import { Page } from '../components/page.tsx';
import { Clip, type Column, DataTable } from '../components/table.tsx';
import { Moment } from '../components/time.tsx';
import {
  type ActivityEvent,
  activityView,
  actorName,
  addressLabel,
  concernsOnlyActor,
  describeDetail,
  describeSubject,
  labelActors,
  mergeActivity,
} from '../state/activity.ts';
import { listDays } from '../state/clock.ts';
import { describeLoaded } from '../state/format.ts';
import { actionLabel, capitalized } from '../state/labels.ts';
import type { Pages } from '../state/list.ts';
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

type ActivityFilter = Omit<RequestInput<'listActivity'>, 'cursor'>;

const everything = activityView.initial;

/** Shows the audit events in the viewer's scope. The core filters them, because the page has loaded only some of them. */
export function Activity({ session, title }: ScreenProps) {
  const viewerId = session.viewer.id;
  const [chosen, change] = useView(activityView.name, everything);
  const filter = { ...chosen, ...listDays(chosen.from, chosen.to) };
  const pages = activityPages(filter);
  const resource = useFreshResource<ActivityView>(`activity/${JSON.stringify(filter)}`, (before) => loadNewest(filter, before));
  const view = resource.state.value.value;
  const events = view?.events ?? [];
  const isFiltered = Object.values(chosen).some((value) => value !== '');
  const reset = isFiltered ? { label: 'Show all activity', onReset: () => change(everything) } : null;
  return (
    <Page
      title={title}
      actions={
        events.length > 0 && <ExportAllButton request={{ name: 'exportActivity', input: filter, file: 'activity.csv' }} noun="event" />
      }
      head={<Filters filter={chosen} viewerId={viewerId} onChange={change} />}
      resource={resource}
      foot={
        view !== null &&
        events.length > 0 && (
          <>
            <span role="status">{describeLoaded(events.length, view, 'event')}, newest first</span>
            <MoreButton resource={resource} pages={pages} label="Show older activity" />
          </>
        )
      }
    >
      <Loadable resource={resource} noun="activity" isInPage reset={reset}>
        {() =>
          events.length > 0 ? (
            <DataTable label="Activity" columns={columnsFor(viewerId)} rows={events} getId={({ id }) => id} getName={({ id }) => id} />
          ) : (
            <NoActivity reset={reset} />
          )
        }
      </Loadable>
    </Page>
  );
}

/** @property reset null if nothing is filtered */
function NoActivity({ reset }: { reset: Reset | null }) {
  if (reset) {
    return (
      <Empty title="No matching activity">
        <button type="button" onClick={reset.onReset}>
          {reset.label}
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No activity yet">
      <p>This list will show who created, revoked or deleted keys and users, when, and from which address.</p>
    </Empty>
  );
}

async function loadNewest(filter: ActivityFilter, before: ActivityView | null): Promise<Result<ActivityView>> {
  const result = await window.callkey.request('listActivity', { ...filter, cursor: null });
  return result.ok ? { ok: true, value: mergeActivity(result.value, before) } : result;
}

type FiltersProps = { filter: typeof everything; viewerId: string; onChange: (changes: Partial<typeof everything>) => void };

const facetsMs = 60_000;

function Filters({ filter: { actor, action, from, to }, viewerId, onChange }: FiltersProps) {
  const facets = useFreshResource('activity-facets', () => window.callkey.request('listActivityFacets', {}), facetsMs).state.value.value;
  const userLabels = labelActors(facets?.actors ?? [], viewerId);
  const actions = facets?.actions.map((name) => [name, capitalized(actionLabel(name))] as const) ?? [];
  return (
    <search class="toolbar">
      <Choice label="User" all="All users" value={actor} options={userLabels} onChange={(chosen) => onChange({ actor: chosen })} />
      <Choice label="Action" all="All actions" value={action} options={actions} onChange={(chosen) => onChange({ action: chosen })} />
      <DayRange from={from} to={to} onChange={onChange} />
    </search>
  );
}

type ChoiceProps = {
  label: string;
  all: string;
  value: string;
  /** Values with their labels. */
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
};

function Choice({ label, all, value, options, onChange }: ChoiceProps) {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">{all}</option>
        {/* The address may contain a value that isn't in the viewer's activity. */}
        {value !== '' && !options.some(([id]) => id === value) && <option value={value}>Selected {label.toLowerCase()}</option>}
        {options
          .toSorted(([, a], [, b]) => a.localeCompare(b))
          .map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
      </select>
    </label>
  );
}

function activityPages(filter: ActivityFilter): Pages<ActivityView> {
  return {
    load: (cursor) => window.callkey.request('listActivity', { ...filter, cursor }),
    join: (view, next) => ({ ...next, events: [...view.events, ...next.events] }),
    count: ({ events }) => events.length,
    empty: { events: [], nextCursor: null, total: 0, totalIsMore: false },
  };
}
