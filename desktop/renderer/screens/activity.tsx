import type { ActivityView } from '#contract/console.ts';
import type { Result } from '../../ipc.ts';
import { Clip } from '../components/clip.tsx';
import { DataTable } from '../components/data-table.tsx';
import { ExportButton } from '../components/export-button.tsx';
import { Empty, Loadable, useFreshResource } from '../components/loadable.tsx';
import { MoreButton } from '../components/more-button.tsx';
import { Freshness, Page } from '../components/page.tsx';
import type { Column } from '../components/table-model.ts';
import { Moment } from '../components/time.tsx';
import { useView } from '../components/use-view.ts';
import {
  type ActivityEvent,
  type ActivityFilter,
  actionsOf,
  actorOf,
  actorsOf,
  addressLabel,
  eventCsvHead,
  eventCsvRow,
  everything,
  filterEvents,
  isAboutItself,
  mergeActivity,
} from '../state/activity-list.ts';
import { ownZone } from '../state/clock.ts';
import { pluralize } from '../state/format.ts';
import { actionLabel, capitalized } from '../state/labels.ts';
import type { ScreenProps } from '../state/navigation.ts';
import type { Pages } from '../state/pages.ts';

type EventColumn = Column<ActivityEvent, string>;

const columnsFor = (viewerId: string): EventColumn[] => [
  {
    name: 'what',
    label: 'What',
    width: 'name',
    cell: ({ action, subject }) => (
      <Clip>
        <span class="verb">{capitalized(actionLabel(action))}</span>
        {!isAboutItself(action) && (
          <>
            {' '}
            <bdi>{subject.name}</bdi>
          </>
        )}
      </Clip>
    ),
  },
  {
    name: 'who',
    label: 'Who',
    width: 'text',
    cell: (event) => (event.actor?.id === viewerId ? <span class="tag you">You</span> : <Clip>{actorOf(event, viewerId)}</Clip>),
  },
  { name: 'from', label: 'From', width: 'moment', cell: ({ address }) => <Clip class="faint">{addressLabel(address)}</Clip> },
  { name: 'when', label: 'When', width: 'moment', cell: ({ at }) => <Moment at={at} isInTable /> },
];

/** The audit events of the viewer's scope. */
export function Activity({ session, title }: ScreenProps) {
  const viewerId = session.viewer.id;
  const [filter, change] = useView('activity', everything);
  const resource = useFreshResource('activity', loadNewest);
  const events = resource.state.value.value?.events ?? [];
  const found = filterEvents(events, filter, viewerId, ownZone.value);
  return (
    <Page
      title={title}
      actions={
        events.length > 0 && (
          <ExportButton name="activity" head={eventCsvHead} rows={() => found.map((event) => eventCsvRow(event, viewerId))} />
        )
      }
      foot={
        events.length > 0 && (
          <>
            <Freshness resource={resource} />
            <span role="status">{pluralize(found.length, 'event')}, newest first</span>
            <MoreButton resource={resource} pages={activityPages} label="Show older activity" />
          </>
        )
      }
    >
      <Loadable resource={resource} what="activity">
        {() =>
          events.length === 0 ? (
            <Empty title="No activity yet">
              <p>This list will show who created, revoked or deleted keys and users, when, and from which address.</p>
            </Empty>
          ) : (
            <>
              <Filters events={events} filter={filter} viewerId={viewerId} onChange={change} />
              {found.length === 0 ? (
                <Empty title="No matching activity">
                  <button type="button" onClick={() => change(everything)}>
                    Show all activity
                  </button>
                </Empty>
              ) : (
                <DataTable label="Activity" columns={columnsFor(viewerId)} rows={found} idOf={({ id }) => id} nameOf={({ id }) => id} />
              )}
            </>
          )
        }
      </Loadable>
    </Page>
  );
}

async function loadNewest(before: ActivityView | null): Promise<Result<ActivityView>> {
  const result = await window.callkey.listActivity(null);
  return result.ok ? { ok: true, value: mergeActivity(result.value, before) } : result;
}

type FiltersProps = {
  events: readonly ActivityEvent[];
  filter: ActivityFilter;
  viewerId: string;
  onChange: (changes: Partial<ActivityFilter>) => void;
};

function Filters({ events, filter: { person, action, day }, viewerId, onChange }: FiltersProps) {
  return (
    <search class="toolbar">
      <label>
        <span class="visually-hidden">User</span>
        <select value={person} onChange={({ currentTarget }) => onChange({ person: currentTarget.value })}>
          <option value="">All users</option>
          {actorsOf(events, viewerId).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="visually-hidden">Action</span>
        <select value={action} onChange={({ currentTarget }) => onChange({ action: currentTarget.value })}>
          <option value="">All actions</option>
          {actionsOf(events).map((name) => (
            <option key={name} value={name}>
              {capitalized(actionLabel(name))}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="visually-hidden">Day</span>
        <input class="compact" type="date" value={day} onInput={({ currentTarget }) => onChange({ day: currentTarget.value })} />
      </label>
    </search>
  );
}

const activityPages: Pages<ActivityView> = {
  load: (cursor) => window.callkey.listActivity(cursor),
  join: (view, next) => ({ events: [...view.events, ...next.events], nextCursor: next.nextCursor }),
  count: ({ events }) => events.length,
  empty: { events: [], nextCursor: null },
};
