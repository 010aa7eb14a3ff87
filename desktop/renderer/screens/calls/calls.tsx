import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { callStateLabels, callStates } from '#contract/calls/states.ts';
import type { AllCallsSummaryView, CallsSummaryView, CallsView, CallView, DialerTroubleView } from '#contract/console/calls.ts';
import type { CampaignsView } from '#contract/console/directory.ts';
import { csvFileName } from '#contract/files/csv.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { foldText } from '#contract/text/text.ts';
import type { RequestInput, Result } from '../../../ipc.ts';
import { screensFor } from '../../../screens.ts';
import { CallBadge, DialerOff } from '../../components/call.tsx';
import { OutcomeChart } from '../../components/charts.tsx';
import { type Campaign, ChooseCampaign, findCampaigns, focusCampaignChoice, type Matches, useCampaigns } from '../../components/choose.tsx';
import { DayRange } from '../../components/dates.tsx';
import { ExportAllButton } from '../../components/export-buttons.tsx';
import { Chips, FilterSelect, SearchInput } from '../../components/form.tsx';
import {
  Count,
  Empty,
  FreshRows,
  Loadable,
  type Reset,
  ResetButton,
  useFilters,
  useHeld,
  useList,
  useSearchedList,
  useSettled,
} from '../../components/list.tsx';
import { ListPage, Page } from '../../components/page.tsx';
import { Rare } from '../../components/popovers.tsx';
import { StopButton } from '../../components/stops.tsx';
import { Clip, ClipMiddle, type Column, DataTable } from '../../components/table.tsx';
import { Moment, Time } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { labelKeys, sharedNames, shortId } from '../../state/api-keys.ts';
import { callDurationMs, combineCampaigns, describeState, outcomeGroups, outcomesByCampaign, sum, summaryMs } from '../../state/calls.ts';
import { firstChartDay, listDays, ownZone } from '../../state/clock.ts';
import { day, defineFilters, oneOf, sortBy, text } from '../../state/filters.ts';
import { formatDuration, type Sort, sortAfterPress, sorted } from '../../state/format.ts';
import { type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { session } from '../../state/session.ts';
import { CallDetails } from './call-details.tsx';

const screenFilters = defineFilters('calls', ['campaign', 'open'], {
  // The ID of the campaign whose calls are listed; empty for all campaigns together
  campaign: text(),
  // The contact ID of the call whose details are shown, in a campaign's list
  open: text(),
  // The same in the list of all campaigns, but with the campaign's ID in front of it: `c1/k1`
  call: text(),
  // Without a campaign: whether all calls are listed, or the outcomes of each campaign
  by: oneOf(['calls', 'campaigns'], 'calls'),
  state: oneOf(callStates, null),
  apiKey: text(),
  search: text(),
  from: day(),
  to: day(),
  // How the campaigns are sorted
  sort: sortBy(['name', 'account', 'total', ...outcomeGroups.map(({ name }) => name)], { column: 'total', isDescending: true }),
});

type Filters = typeof screenFilters.initial;
type Change = (changes: Partial<Filters>) => void;

/** Shows the calls of a campaign, or of all campaigns. No other screen or endpoint shows a call's outcome. */
export function Calls({ session: { viewer }, title }: ScreenProps) {
  const list = useCampaigns(summaryMs);
  const [filters, change] = useFilters(screenFilters);
  const { view: campaigns } = list.state.value;
  const [first] = campaigns?.options ?? [];
  const listed = campaigns?.options.find(({ id }) => id === filters.campaign);
  const isUnlisted = campaigns !== null && filters.campaign !== '' && !listed;
  // A campaign that was opened through its address or a search may not be on the loaded page.
  const found = useList({
    key: `campaign/${filters.campaign}`,
    every: null,
    load: isUnlisted ? () => findCampaigns(filters.campaign) : null,
  });
  const search = useSettled(filters.search.trim());

  if (!campaigns || !first) {
    const canCreate = screensFor(viewer).some(({ name }) => name === 'directory');
    return (
      <Page title={title}>
        <Loadable list={list} noun="your campaigns">
          {() => (
            <Empty title="No campaigns">
              <p>
                Calls belong to campaigns, and you don’t have access to any campaigns yet.{' '}
                {canCreate ? (
                  <a href={formatAddress('directory', { kind: 'campaign' })}>Create one in the directory.</a>
                ) : (
                  'Ask your operator to create one.'
                )}
              </p>
            </Empty>
          )}
        </Loadable>
      </Page>
    );
  }
  const choose = (id: string) => {
    change({ campaign: id, open: '', call: '', search: '' });
    scrollToTop();
    focusCampaignChoice();
  };
  const isOnlyOne = campaigns.options.length === 1 && campaigns.isAll;
  const campaign =
    isOnlyOne && filters.campaign === '' ? first : (listed ?? found.state.value.view?.options.find(({ id }) => id === filters.campaign));
  const props = {
    title,
    filters,
    known: campaign ? [campaign, ...campaigns.options] : campaigns.options,
    search,
    onChange: change,
    choice: (
      <>
        <ChooseCampaign
          campaigns={campaigns}
          chosen={campaign ?? null}
          none="All campaigns"
          onChoose={(chosen) => choose(chosen?.id ?? '')}
        />
        <StopButton shown={campaign ? { kind: 'campaign', id: campaign.id, name: campaign.name } : null} />
      </>
    ),
  };
  if (campaign) return <CampaignCalls key={campaign.id} campaignId={campaign.id} {...props} />;
  if (filters.campaign === '') return <AllCalls {...props} campaigns={campaigns} onChoose={choose} />;
  return (
    <Page title={title}>
      <Loadable list={found} noun="the campaign">
        {() => (
          <Empty title="Campaign not found">
            <p>It doesn’t exist, or you don’t have access to it.</p>
            <ResetButton reset={{ label: 'Show all calls', onReset: () => change(screenFilters.initial) }} />
          </Empty>
        )}
      </Loadable>
    </Page>
  );
}

/**
 * @property known the campaigns whose accounts are known
 * @property search the search, once the user has stopped typing
 * @property choice lets the user choose a campaign
 */
type CallsProps = {
  title: string;
  known: readonly Campaign[];
  filters: Filters;
  search: string;
  onChange: Change;
  choice: ComponentChildren;
};

function CampaignCalls({ campaignId, ...props }: CallsProps & { campaignId: string }) {
  const { filters, search, onChange } = props;
  const filter = chartFilter(filters, search);
  // The list doesn't wait for the chart.
  const outcomes = useList({
    key: `outcomes/${campaignId}`,
    filter: JSON.stringify(filter),
    every: summaryMs,
    load: () => window.callkey.request('summarizeCalls', { id: campaignId, ...filter }),
  });
  const { view: summary } = outcomes.state.value;
  const chart = <Chart {...{ filters, filter, summary, isLoading: summary === null || outcomes.isOld, onChange }} />;
  return <CallList {...props} campaignId={campaignId} actions={props.choice} chart={chart} />;
}

type ChartFilter = ReturnType<typeof chartFilter>;

/** Returns the chart's filter. A single day is only highlighted among the last 30, so that it can be compared with the others. */
function chartFilter({ state, apiKey, from, to }: Filters, search: string) {
  const isMarked = from === to && (from === '' || from >= firstChartDay());
  return { state, apiKey, search, ...(isMarked ? { from: '', to: '' } : { from, to }), timeZone: ownZone.value };
}

type ChartProps = {
  filters: Filters;
  filter: ChartFilter;
  summary: CallsSummaryView | null;
  isLoading: boolean;
  note?: string;
  onChange: Change;
};

function Chart({ filters: { from, to }, filter: { timeZone: _, ...filter }, summary, isLoading, note = '', onChange }: ChartProps) {
  return (
    <>
      <DialerOff />
      {summary && <DialerTrouble trouble={summary.dialerTrouble} />}
      <OutcomeChart
        summary={summary}
        isLoading={isLoading}
        day={from === to ? from : ''}
        filter={filter}
        note={note}
        onChoose={(chosen) => onChange({ from: chosen, to: chosen, open: '', call: '' })}
      />
    </>
  );
}

function DialerTrouble({ trouble }: { trouble: DialerTroubleView }) {
  return (
    <div role="status">
      {trouble && (
        <p class="notice">
          The provider hasn’t accepted a call since <Moment at={trouble.since} />: {trouble.reason}.
        </p>
      )}
    </div>
  );
}

const pollMs = 2_000;
/** A filter reads many calls. */
const filteredMs = 10_000;

/** @property campaignId null for all campaigns @property chart the chart above the list */
type CallListProps = CallsProps & { campaignId: string | null; actions: ComponentChildren; chart: ComponentChildren };

/** Shows the calls of a campaign, or of all campaigns in scope, filtered by the core, and follows them. */
function CallList({ title, known, campaignId, filters, search, onChange, actions, chart }: CallListProps) {
  const { state, apiKey, from, to } = filters;
  const filter = { state, apiKey, search, ...listDays(from, to) };
  const list = useList<CallsView>({
    key: 'calls',
    filter: JSON.stringify([campaignId, filter]),
    every: state !== null || apiKey !== '' || search !== '' ? filteredMs : pollMs,
    isTyping: filters.search.trim() !== search,
    load: (cursor) => loadCalls(campaignId, { ...filter, cursor }),
  });
  const { view, filter: loadedFilter } = list.state.value;
  const held = useHeld(view?.calls ?? noCalls, loadedFilter, getContactId, byNewest);
  const calls = held.shown;
  const listedKeys = useList({ key: 'keys-of-calls', every: summaryMs, load: () => window.callkey.request('listApiKeys', {}) });
  // Includes revoked keys that placed some of the calls shown.
  const keys = [...calls.flatMap((call) => call.apiKey ?? []), ...(listedKeys.state.value.view?.apiKeys ?? [])];
  const labels = labelKeys(keys);
  const shared = [...sharedNames(keys)].join('\n');
  const columns = useMemo(() => columnsFor(campaignId === null, new Set(shared.split('\n'))), [campaignId === null, shared]);
  // The times in the file are those on the screen, and the search is what's typed, even if the list doesn't show its matches yet.
  const exported = { ...filter, search: filters.search.trim(), timeZone: ownZone.value };
  const searchedBackTo = view?.searchedBackTo;
  const isFiltered = state !== null || search !== '' || apiKey !== '' || from !== '' || to !== '';
  const canFilter = useRef(false);
  // Until the list of another filter has loaded, it isn't known whether there are any calls.
  if (!list.isOld) canFilter.current = isFiltered || calls.length > 0 || searchedBackTo !== undefined;
  const showAll = () => onChange({ ...screenFilters.initial, campaign: campaignId ?? '' });
  const reset = isFiltered ? { label: 'Show all calls', onReset: showAll } : null;
  const open = openCall(filters);
  return (
    <ListPage
      title={title}
      actions={
        <>
          {actions}
          {calls.length > 0 && (
            <Rare>
              <ExportAllButton
                request={
                  campaignId === null
                    ? { name: 'exportAllCalls', input: exported, file: csvFileName('calls', '', filters) }
                    : {
                        name: 'exportCalls',
                        input: { id: campaignId, ...exported },
                        file: csvFileName('calls', calls[0]?.campaign.name ?? '', filters),
                      }
                }
                noun="call"
              />
            </Rare>
          )}
        </>
      }
      head={
        <>
          {chart}
          {/* Closes the details, because the open call might not match the new filters. */}
          {canFilter.current && (
            <Toolbar labels={labels} filters={filters} onChange={(changes) => onChange({ open: '', call: '', ...changes })} />
          )}
        </>
      }
      details={
        open && (
          <CallDetails
            key={open.contactId}
            {...open}
            keyLabels={labels}
            accountId={known.find(({ id }) => id === open.campaignId)?.account.id}
            listed={calls.find(({ contactId }) => contactId === open.contactId)}
            onClose={() => onChange({ open: '', call: '' })}
          />
        )
      }
      list={list}
      foot={
        view &&
        (calls.length > 0 || searchedBackTo) && (
          <>
            <Count list={list} count={calls.length} noun="call" of={view} more={searchedBackTo ? 'Search older calls' : 'Show older calls'}>
              , newest first
              {searchedBackTo && (
                <>
                  , searched back to <Time at={searchedBackTo} />
                </>
              )}
            </Count>
            <FreshRows held={held} noun="call" />
          </>
        )
      }
      noun="calls"
      reset={reset}
    >
      {() =>
        calls.length === 0 ? (
          <NoCalls searchedBackTo={searchedBackTo} reset={reset} />
        ) : (
          <DataTable
            label="Calls"
            columns={columns}
            rows={calls}
            getId={getContactId}
            getName={({ requestId }) => requestId}
            openId={open?.contactId ?? ''}
            getHref={({ contactId, campaign }) => formatAddress('calls', { campaign: campaignId ?? campaign.id, open: contactId })}
            onOpen={({ campaign, contactId }) =>
              onChange(campaignId === null ? { call: `${campaign.id}/${contactId}` } : { campaign: campaignId, open: contactId })
            }
          />
        )
      }
    </ListPage>
  );
}

const noCalls: CallsView['calls'] = [];
const getContactId = ({ contactId }: CallView) => contactId;
const byNewest = (a: CallView, b: CallView) => Date.parse(b.placedAt) - Date.parse(a.placedAt) || b.contactId.localeCompare(a.contactId);

function loadCalls(campaignId: string | null, query: RequestInput<'listAllCalls'>): Promise<Result<CallsView>> {
  return campaignId === null
    ? window.callkey.request('listAllCalls', query)
    : window.callkey.request('listCalls', { id: campaignId, ...query });
}

/** Returns the call whose details are shown. */
function openCall({ campaign, open, call }: Filters): { campaignId: string; contactId: string } | null {
  if (open !== '') return { campaignId: campaign, contactId: open };
  const [campaignId, contactId] = call.split('/');
  return campaignId && contactId ? { campaignId, contactId } : null;
}

/** @property reset null if nothing is filtered */
function NoCalls({ searchedBackTo, reset }: { searchedBackTo: string | undefined; reset: Reset | null }) {
  if (searchedBackTo !== undefined) {
    return (
      <Empty title="No matching calls so far">
        <p>
          Calls placed since <Time at={searchedBackTo} /> were searched. Search older ones, or enter more of the name, phone number or
          request ID.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={reset ? 'No matching calls' : 'No calls yet'}>
      {reset ? <ResetButton reset={reset} /> : <p>Calls that your systems place with an API key appear here.</p>}
    </Empty>
  );
}

/** @property labels those of the keys that can be chosen */
type ToolbarProps = { labels: ReadonlyMap<string, string>; filters: Filters; onChange: Change };

function Toolbar({ labels, filters: { search, state, apiKey, from, to }, onChange }: ToolbarProps) {
  // The address may name an older key than the ones that are listed.
  const others = apiKey === '' || labels.has(apiKey) ? [] : [[apiKey, 'Selected key'] as const];
  return (
    <search class="toolbar">
      <SearchInput
        label="Search"
        placeholder="Contact, phone number, or request ID"
        value={search}
        onInput={(typed) => onChange({ search: typed })}
      />
      <FilterSelect
        label="State"
        value={state ?? ''}
        options={[['', 'Any outcome'], ...callStates.map((name) => [name, callStateLabels[name]] as const)]}
        onChange={(chosen) => onChange({ state: chosen === '' ? null : chosen })}
      />
      <FilterSelect
        label="Key"
        value={apiKey}
        options={[['', 'Any key'], ...labels, ...others]}
        onChange={(chosen) => onChange({ apiKey: chosen })}
      />
      <DayRange from={from} to={to} onChange={onChange} />
    </search>
  );
}

type CallColumn = Column<CallView, string>;

/** @param shared the names that several keys have */
const allColumns = (shared: ReadonlySet<string>): CallColumn[] => [
  {
    name: 'contact',
    label: 'Contact',
    width: 'text',
    cell: ({ contact }) => <Contact contact={contact} />,
  },
  {
    name: 'request',
    label: 'Request ID',
    width: 'short',
    needs: 'wide',
    cell: ({ requestId }) => <ClipMiddle class="faint" text={requestId} />,
  },
  {
    name: 'campaign',
    label: 'Campaign',
    width: 'campaign',
    needs: 'wide',
    cell: ({ campaign, requestId }) => (
      <>
        <Clip>{campaign.name}</Clip>
        <ClipMiddle class="caption" text={requestId} />
      </>
    ),
  },
  {
    name: 'state',
    label: 'Outcome',
    width: 'name',
    cell: (call) => (
      <span class="line outcome">
        <CallBadge call={call} />
        <StateDetail call={call} />
      </span>
    ),
  },
  {
    name: 'key',
    label: 'Key',
    width: 'key',
    cell: ({ apiKey }) =>
      apiKey ? (
        <>
          <Clip>{apiKey.name}</Clip>
          {shared.has(apiKey.name) && <span class="caption">{shortId(apiKey.id)}</span>}
        </>
      ) : (
        <span class="faint">Another user’s key</span>
      ),
  },
  { name: 'placed', label: 'Placed', width: 'moment', cell: ({ placedAt }) => <Moment at={placedAt} isInTable /> },
  {
    name: 'duration',
    label: 'Duration',
    width: 'number',
    needs: 'medium',
    cell: (call) => {
      const duration = callDurationMs(call);
      return duration === null ? null : formatDuration(duration);
    },
  },
];

function StateDetail({ call }: { call: CallView }) {
  const detail = describeState(call, ownZone.value);
  return detail === null ? null : <bdi class="caption">{detail}</bdi>;
}

/** Shows a contact's name with the phone number, and the campaign if there's no room for its column. */
function Contact({ contact: { name, phone }, campaign }: Pick<CallView, 'contact'> & { campaign?: string }) {
  return (
    <>
      <Clip>{name ?? phone ?? 'Erased'}</Clip>
      <span class="caption clip">
        {name !== null && phone}
        {campaign !== undefined && (
          <span class="under-wide">
            {name !== null && phone !== null && ' · '}
            <bdi>{campaign}</bdi>
          </span>
        )}
      </span>
    </>
  );
}

/**
 * A campaign's table doesn't repeat the campaign's name. The table of all campaigns has no room for a column of request IDs, which are under
 * the campaigns' names.
 */
function columnsFor(hasCampaigns: boolean, shared: ReadonlySet<string>): CallColumn[] {
  const columns = allColumns(shared);
  if (!hasCampaigns) return columns.filter(({ name }) => name !== 'campaign');
  return columns
    .filter(({ name }) => name !== 'request')
    .map((column) =>
      column.name === 'contact'
        ? { ...column, cell: ({ contact, campaign }: CallView) => <Contact contact={contact} campaign={campaign.name} /> }
        : column,
    );
}

type OutcomesView = CampaignsView & AllCallsSummaryView;

const byLabels = [
  ['calls', 'List'],
  ['campaigns', 'By campaign'],
] as const;

type AllCallsProps = CallsProps & { campaigns: Matches<Campaign>; onChoose: (campaignId: string) => void };

/** Shows the calls of all campaigns, or the outcomes of each, under a chart of all calls. A click on a campaign's row opens its calls. */
function AllCalls({ campaigns, onChoose, ...props }: AllCallsProps) {
  const { title, filters, search, onChange, choice } = props;
  const { by, from, to, sort } = filters;
  const isByCampaign = by === 'campaigns';
  // Ignores the filters that aren't shown with the table of campaigns.
  const filter = isByCampaign ? chartFilter({ ...screenFilters.initial, from, to }, '') : chartFilter(filters, search);
  const { list, isWhole } = useSearchedList<OutcomesView>({
    key: 'all-outcomes',
    filter: JSON.stringify(filter),
    every: summaryMs,
    search: isByCampaign ? filters.search.trim() : '',
    load: (campaignSearch, cursor) => loadOutcomes(filter, campaignSearch, cursor),
    join: (view, next) => ({
      ...next,
      campaigns: [...view.campaigns, ...next.campaigns],
      days: view.days.map((each, index) => ({ ...each, campaigns: [...each.campaigns, ...(next.days[index]?.campaigns ?? [])] })),
    }),
  });
  const { view } = list.state.value;
  const actions = (
    <>
      <Chips value={by} options={byLabels} onChange={(chosenBy) => onChange({ by: chosenBy, search: '', call: '' })} />
      {choice}
    </>
  );
  const chart = (
    <Chart
      filters={filters}
      filter={filter}
      summary={view && combineCampaigns(view)}
      isLoading={isWhole && (view === null || list.isOld)}
      note={isWhole || !view ? '' : describeCounted(view)}
      onChange={onChange}
    />
  );
  if (!isByCampaign) return <CallList {...props} campaignId={null} actions={actions} chart={chart} />;
  return (
    <ListPage
      title={title}
      actions={actions}
      head={
        <>
          {chart}
          <search class="toolbar">
            {!campaigns.isAll && (
              <SearchInput label="Search by campaign or account" value={filters.search} onInput={(typed) => onChange({ search: typed })} />
            )}
            <DayRange from={from} to={to} any="Last 30 days" onChange={onChange} />
          </search>
        </>
      }
      list={list}
      foot={!isWhole && <Count list={list} count={view?.campaigns.length ?? 0} noun="campaign" />}
      noun="outcomes"
    >
      {(shown) => (
        <Outcomes
          view={!campaigns.isAll && isWhole ? matchingCampaigns(shown, filters.search) : shown}
          isMany={!campaigns.isAll}
          day={from === to ? from : ''}
          sort={sort}
          onSort={(next) => onChange({ sort: next })}
          onChoose={onChoose}
        />
      )}
    </ListPage>
  );
}

async function loadOutcomes(filter: ChartFilter, search: string, cursor: string | null): Promise<Result<OutcomesView>> {
  const [campaigns, summary] = await Promise.all([
    window.callkey.request('listCampaigns', { search, cursor }),
    window.callkey.request('summarizeAllCalls', { ...filter, campaignSearch: search, cursor }),
  ]);
  if (!campaigns.ok) return campaigns;
  return summary.ok ? { ok: true, value: { ...campaigns.value, ...summary.value } } : summary;
}

/** Says which campaigns the core has found and counted. */
function describeCounted({ campaigns, nextCursor }: OutcomesView): string {
  return nextCursor === null ? 'Counts only matching campaigns' : `Counts only the first ${counted(campaigns.length, 'campaign')}`;
}

/** Returns the matching campaigns. Called only once all campaigns are loaded. */
function matchingCampaigns(view: OutcomesView, search: string): OutcomesView {
  const query = foldText(search.trim());
  const campaigns = view.campaigns.filter(({ name, account }) => [name, account.name].some((each) => foldText(each).includes(query)));
  return { ...view, campaigns };
}

type OutcomesProps = {
  view: OutcomesView;
  isMany: boolean;
  day: string;
  sort: Sort<string>;
  onSort: (sort: Sort<string>) => void;
  onChoose: (campaignId: string) => void;
};

function Outcomes({ view, isMany, day, sort, onSort, onChoose }: OutcomesProps) {
  if (view.campaigns.length === 0) return <Empty title="No matching campaigns" />;
  if (!isMany && view.days.every((each) => each.campaigns.length === 0)) {
    return (
      <Empty title="No calls in the last 30 days">
        <p>Choose a campaign to see its older calls.</p>
      </Empty>
    );
  }
  const { viewer, tenancy } = session.value ?? {};
  const hasOneAccount = tenancy?.kind === 'account' || (viewer?.account ?? null) !== null;
  const outcomes = outcomesByCampaign(view, day);
  const rows = view.campaigns.map((campaign) => {
    const counts = outcomes(campaign.id);
    return { ...campaign, counts, total: sum(counts) };
  });
  const sortValue = ({ name, account, total, counts }: CampaignRow) => {
    if (sort.column === 'name') return name;
    if (sort.column === 'account') return account.name;
    return counts[outcomeGroups.findIndex((group) => group.name === sort.column)] ?? total;
  };
  return (
    <DataTable
      label="Campaigns"
      columns={hasOneAccount ? oneAccountColumns : outcomeColumns}
      rows={sorted(rows, sortValue, sort.isDescending)}
      getId={({ id }) => id}
      getName={({ name }) => name}
      sort={sort}
      onSort={(column) => onSort(sortAfterPress(sort, column, column !== 'name' && column !== 'account'))}
      getHref={({ id }) => formatAddress('calls', { campaign: id })}
      onOpen={({ id }) => onChoose(id)}
    />
  );
}

type CampaignRow = CampaignsView['campaigns'][number] & { counts: readonly number[]; total: number };

const outcomeColumns: readonly Column<CampaignRow, string>[] = [
  { name: 'name', label: 'Campaign', width: 'name', cell: ({ name }) => <Clip>{name}</Clip> },
  { name: 'account', label: 'Account', width: 'text', cell: ({ account }) => <Clip>{account.name}</Clip> },
  { name: 'total', label: 'Calls', width: 'number', cell: ({ total }) => <Amount value={total} /> },
  ...outcomeGroups.map(
    ({ name, label }, index): Column<CampaignRow, string> => ({
      name,
      label,
      width: 'count',
      ...((name === 'undialed' || name === 'waiting') && ({ needs: 'wide' } as const)),
      cell: ({ counts }) => <Amount value={counts[index] ?? 0} />,
    }),
  ),
];

const oneAccountColumns = outcomeColumns.filter(({ name }) => name !== 'account');

function Amount({ value }: { value: number }) {
  return <span class={value === 0 ? 'faint' : undefined}>{formatCount(value)}</span>;
}
