import { useMemo } from 'preact/hooks';
import { type ActivityView, missingActorName } from '#contract/console/activity.ts';
import type { SessionView } from '#contract/console/session.ts';
import { csvFileName } from '#contract/files/csv.ts';
import type { Result } from '../../ipc.ts';
import { type ScreenName, screensFor } from '../../screens.ts';
import { DayRange } from '../components/dates.tsx';
import { Copyable, Details, type Fact, Facts, NoDetails } from '../components/details.tsx';
import { ExportAllButton } from '../components/export-buttons.tsx';
import { FilterSelect, SearchInput } from '../components/form.tsx';
import { Icon } from '../components/icons.tsx';
import { Count, Empty, ResetButton, useFilters, useList, useOpen, useSettled } from '../components/list.tsx';
import { ListPage } from '../components/page.tsx';
import { Clip, type Column, DataTable } from '../components/table.tsx';
import { Moment } from '../components/time.tsx';
import {
  type ActivityEvent,
  actorName,
  addressLabel,
  concernsOnlyActor,
  describeEvent,
  describeSubject,
  findReplaced,
  labelActors,
  mergeActivity,
  replacesDetail,
} from '../state/activity.ts';
import { formatAddress } from '../state/addresses.ts';
import { listDays, ownZone } from '../state/clock.ts';
import { day, defineFilters, text } from '../state/filters.ts';
import { formatDates } from '../state/format.ts';
import { actionLabel, capitalized } from '../state/labels.ts';
import { findById, mapped } from '../state/list.ts';
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
        {detail !== undefined && <span class="faint"> ({formatDates(detail)})</span>}
      </Clip>
    ),
  },
  {
    name: 'who',
    label: 'Who',
    width: 'text',
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

const screenFilters = defineFilters('activity', ['open'], {
  open: text(),
  search: text(),
  subject: text(),
  actor: text(),
  action: text(),
  from: day(),
  to: day(),
});
type Filters = typeof screenFilters.initial;

/** Shows the audit events in the viewer's scope. The core filters them, because the page has loaded only some of them. */
export function Activity({ session, title }: ScreenProps) {
  const viewerId = session.viewer.id;
  const columns = useMemo(() => columnsFor(viewerId), [viewerId]);
  const [{ open, ...filters }, change] = useFilters(screenFilters);
  const settled = useSettled(filters.search.trim());
  const filter = { ...filters, search: settled, ...listDays(filters.from, filters.to) };
  const list = useList<ActivityView>({
    key: `activity/${JSON.stringify(filter)}`,
    load: (cursor) => window.callkey.request('listActivity', { ...filter, cursor }),
    merge: mergeActivity,
  });
  const { view } = list.state.value;
  const events = view?.events ?? [];
  const opened = useOpen(view?.events, open, findEvent);
  const close = () => change({ open: '' });
  const isFiltered = Object.values(filters).some((value) => value !== '');
  const reset = isFiltered ? { label: 'Show all activity', onReset: () => change(screenFilters.initial) } : null;
  return (
    <ListPage
      title={title}
      actions={
        events.length > 0 && (
          <ExportAllButton
            request={{
              name: 'exportActivity',
              input: { ...filter, search: filters.search.trim(), timeZone: ownZone.value },
              file: csvFileName('activity', '', filters),
            }}
            noun="event"
          />
        )
      }
      head={<Toolbar filters={filters} viewerId={viewerId} onChange={change} />}
      details={
        opened.row ? (
          <EventDetails
            key={opened.row.id}
            event={opened.row}
            session={session}
            onFilter={(subject) => change({ ...screenFilters.initial, subject })}
            onClose={close}
          />
        ) : (
          opened.failure && (
            <NoDetails
              title="Event"
              rowId={open}
              failure={opened.failure}
              gone="This event doesn’t exist, or you don’t have access to it."
              onClose={close}
            />
          )
        )
      }
      list={list}
      foot={
        view !== null &&
        events.length > 0 && (
          <Count list={list} count={events.length} noun="event" of={view} more="Show older activity">
            , newest first
          </Count>
        )
      }
      noun="activity"
      reset={reset}
    >
      {() =>
        events.length > 0 ? (
          <DataTable
            label="Activity"
            columns={columns}
            rows={events}
            getId={({ id }) => id}
            getName={(event) => describeEvent(event, viewerId)}
            onOpen={({ id }) => change({ open: id })}
            openId={open}
            getHref={({ id }) => formatAddress('activity', { open: id })}
          />
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

function findEvent(id: string): Promise<Result<ActivityEvent>> {
  return findById(
    mapped(window.callkey.request('listActivity', { search: id }), ({ events }) => events),
    id,
  );
}

/** Looks up what held before an event. Null if it isn't recorded, or further back than one would look for. */
async function findBefore(event: ActivityEvent): Promise<Result<{ before: string | null }>> {
  const older: ActivityEvent[] = [];
  let cursor: string | null = null;
  let isPast = false;
  for (let page = 0; page < maxPagesBack; page++) {
    const result: Result<ActivityView> = await window.callkey.request('listActivity', { subject: event.subject.id, cursor });
    if (!result.ok) return result;
    for (const each of result.value.events) {
      if (isPast) older.push(each);
      isPast ||= each.id === event.id;
    }
    const before = findReplaced(event, older);
    cursor = result.value.nextCursor;
    if (before !== null || cursor === null) return { ok: true, value: { before } };
  }
  return { ok: true, value: { before: null } };
}

const maxPagesBack = 5;

type EventDetailsProps = { event: ActivityEvent; session: SessionView; onFilter: (subject: string) => void; onClose: () => void };

function EventDetails({ event, session, onFilter, onClose }: EventDetailsProps) {
  const { id, at, actor, action, subject, address, detail } = event;
  const seesUsers = screensFor(session.viewer).some(({ name }) => name === 'users');
  const target = subjectAddress(event, session);
  const noun = subjectNouns[subject.kind] ?? subject.kind;
  const person = actor && <bdi>{actor.name}</bdi>;
  const { email } = actor ?? {};
  // Staff of the service, for example, aren't among the users of the selected account. Only users who still exist have an address.
  const findActor = () => window.callkey.request('previewDeletion', { id: actor?.id ?? '', cursor: null });
  const canFind = seesUsers && email !== undefined;
  const { view: listed } = useList({ key: `actor/${id}`, every: null, load: canFind ? findActor : null }).state.value;
  const replaces = replacesDetail(event);
  const { view: earlier } = useList({ key: `before/${id}`, every: null, load: replaces ? () => findBefore(event) : null }).state.value;
  const showText = (term: string, shown: string): Fact => [term, <bdi key={term}>{capitalized(formatDates(shown))}</bdi>];
  return (
    <Details title={describeEvent(event, session.viewer.id)} rowId={id} onClose={onClose}>
      <div class="row">
        {target !== null && (
          <a class="button" href={target}>
            Show the {noun}
          </a>
        )}
        {subject.kind === 'api-key' && (
          <a class="button" href={formatAddress('calls', { apiKey: subject.id })}>
            Show its calls
          </a>
        )}
        {!concernsOnlyActor(action) && (
          <button type="button" onClick={() => onFilter(subject.id)}>
            All activity about this
          </button>
        )}
      </div>
      <Facts
        facts={[
          ['When', <Moment key="when" at={at} />],
          [
            'Who',
            <span key="who">
              {actor && listed ? <a href={formatAddress('users', { open: actor.id })}>{person}</a> : (person ?? missingActorName(action))}
              {email !== undefined && <bdi class="caption">{email}</bdi>}
            </span>,
          ],
          ['Their ID', actor && <Copyable key="actor" text={actor.id} noun="user ID" />],
          ['From', addressLabel(address)],
          ...(replaces && earlier ? [showText('Before', earlier.before ?? 'not recorded')] : []),
          ...(detail === undefined ? [] : [showText(replaces ? 'After' : 'Detail', detail)]),
          [capitalized(noun), <bdi key="subject">{describeSubject(action, subject.name)}</bdi>],
          [`${capitalized(noun)} ID`, subject.kind !== 'list' && <Copyable key="id" text={subject.id} noun="ID" />],
          ['Event ID', <Copyable key="event" text={id} noun="event ID" />],
        ]}
      />
    </Details>
  );
}

/** What to call the subject of an event, if not like its kind. */
const subjectNouns: Readonly<Record<string, string>> = { 'api-key': 'API key', session: 'user' };

/** Returns the address of what an event is about. A revoked key has one, because its place says who revoked it. Null if it has none. */
function subjectAddress({ action, subject: { kind, id } }: ActivityEvent, { viewer }: SessionView): string | null {
  if (action.endsWith('.deleted')) return null;
  const sees = (screen: ScreenName) => screensFor(viewer).some(({ name }) => name === screen);
  if (kind === 'api-key') return formatAddress('api-keys', { open: id });
  if (kind === 'campaign') return formatAddress('calls', { campaign: id });
  if ((kind === 'user' || kind === 'session') && sees('users')) return formatAddress('users', { open: id });
  return (kind === 'account' || kind === 'partner') && sees('directory') ? formatAddress('directory', { kind, open: id }) : null;
}

const facetsMs = 60_000;

type ToolbarProps = { filters: Omit<Filters, 'open'>; viewerId: string; onChange: (changes: Partial<Filters>) => void };

function Toolbar({ filters: { search, subject, actor, action, from, to }, viewerId, onChange }: ToolbarProps) {
  const load = () => window.callkey.request('listActivityFacets', {});
  const { view: facets } = useList({ key: 'activity-facets', every: facetsMs, load }).state.value;
  const actors = labelActors(facets?.actors ?? [], viewerId);
  const actions = facets?.actions.map((name) => [name, capitalized(actionLabel(name))] as const) ?? [];
  return (
    <search class="toolbar">
      <SearchInput
        label="Search"
        placeholder="Name, reason, address, or ID"
        value={search}
        onInput={(typed) => onChange({ search: typed })}
      />
      {subject !== '' && (
        <button type="button" onClick={() => onChange({ subject: '' })}>
          About one thing <Icon name="close" />
        </button>
      )}
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
