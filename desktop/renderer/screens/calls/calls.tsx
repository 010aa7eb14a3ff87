import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { callStates } from '#contract/calls/states.ts';
import type { AllCallsSummaryView, CallsView, CallView, DialerTroubleView } from '#contract/console/calls.ts';
import type { CampaignsView } from '#contract/console/directory.ts';
import { foldText } from '#contract/text/text.ts';
import type { RequestInput, Result } from '../../../ipc.ts';
import { screensFor } from '../../../screens.ts';
import { DayRange, OutcomeChart } from '../../components/charts.tsx';
import { type Campaign, CampaignSelect, firstPage, focusCampaignSelect } from '../../components/choose.tsx';
import { ExportAllButton } from '../../components/export-buttons.tsx';
import {
  Empty,
  Loadable,
  MoreButton,
  type Reset,
  typingMs,
  useDebounced,
  useFreshResource,
  usePages,
  useResource,
  useView,
} from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { Clip, type Column, DataTable, focusRow } from '../../components/table.tsx';
import { Moment, Time } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { labelKeys } from '../../state/api-keys.ts';
import { type CallsSettings, callDurationMs, callsView, chartFilter, describeState, getOpenCall } from '../../state/calls.ts';
import { combineCampaigns, outcomeGroups, outcomesByCampaign, sum, summaryMs } from '../../state/charts.ts';
import { firstChartDay, listDays, ownZone } from '../../state/clock.ts';
import { describeLoaded, formatDuration, formatNumber, pluralize, type Sort, sortAfterPress, sorted } from '../../state/format.ts';
import { callStateLabels } from '../../state/labels.ts';
import type { Pages, Resource } from '../../state/list.ts';
import { type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { remember } from '../../state/remembered.ts';
import { session, tenancyKey } from '../../state/session.ts';
import { CallBadge, CallDetails } from './call-details.tsx';

/** Shows the calls of a campaign, or of all campaigns. No other screen or endpoint shows a call's outcome. */
export function Calls({ session, title }: ScreenProps) {
  const campaigns = useFreshResource('campaigns', () => window.callkey.request('listCampaigns', firstPage), summaryMs);
  const [settings, change] = useView(callsView.name, callsView.initial);
  const view = campaigns.state.value.value;
  const [first] = view?.campaigns ?? [];
  const canCreate = screensFor(session.viewer).some(({ name }) => name === 'directory');
  const choose = (campaignId: string) => {
    change({ campaign: campaignId, open: '', call: '', search: '', pages: 1 });
    scrollToTop();
    focusCampaignSelect();
  };
  if (!view || !first) {
    return (
      <Page title={title}>
        <Loadable resource={campaigns} noun="your campaigns">
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
  const campaignId = settings.campaign;
  const isOnlyOne = view.campaigns.length === 1 && view.nextCursor === null;
  const chosen = isOnlyOne && campaignId === '' ? first : view.campaigns.find(({ id }) => id === campaignId);
  const show = (campaign: Campaign) => (
    <CallsPage
      key={campaign.id}
      title={title}
      campaignId={campaign.id}
      settings={settings}
      onChange={change}
      actions={<CampaignSelect campaigns={view} chosen={campaign} onChange={choose} />}
      chart={<CampaignChart campaignId={campaign.id} settings={settings} onChange={change} />}
    />
  );
  if (chosen) return show(chosen);
  if (campaignId === '') return <AllCalls title={title} campaigns={view} settings={settings} onChange={change} onChoose={choose} />;
  return <CampaignById key={campaignId} title={title} id={campaignId} show={show} onShowAll={() => change(callsView.initial)} />;
}

type CampaignByIdProps = { title: string; id: string; show: (campaign: Campaign) => ComponentChildren; onShowAll: () => void };

/** Finds a campaign that was opened through its address or a search, and isn't on the loaded page. */
function CampaignById({ title, id, show, onShowAll }: CampaignByIdProps) {
  const resource = useResource(() => window.callkey.request('listCampaigns', { search: id, cursor: null }));
  const campaign = resource.state.value.value?.campaigns.find((each) => each.id === id);
  if (campaign) return show(campaign);
  return (
    <Page title={title}>
      <Loadable resource={resource} noun="the campaign">
        {() => (
          <Empty title="Campaign not found">
            <p>It doesn’t exist, or you don’t have access to it.</p>
            <button type="button" onClick={onShowAll}>
              Show all calls
            </button>
          </Empty>
        )}
      </Loadable>
    </Page>
  );
}

type CampaignChartProps = { campaignId: string; settings: CallsSettings; onChange: (changes: Partial<CallsSettings>) => void };

/** Shows the chart above the list. The list doesn't wait for it. */
function CampaignChart({ campaignId, settings, onChange }: CampaignChartProps) {
  const { from, to } = settings;
  const timeZone = ownZone.value;
  const search = useDebounced(settings.search.trim(), typingMs);
  const filter = chartFilter(settings, search, firstChartDay());
  const load = () => window.callkey.request('summarizeCalls', { id: campaignId, ...filter, timeZone });
  const summary = useFreshResource(`outcomes/${campaignId}/${JSON.stringify([filter, timeZone])}`, load, summaryMs);
  const view = summary.state.value.value;
  return (
    <>
      <DialerOff />
      {view && <DialerTrouble trouble={view.dialerTrouble} />}
      <OutcomeChart
        summary={view}
        day={from === to ? from : ''}
        filter={filter}
        onChoose={(day) => onChange({ from: day, to: day, open: '', call: '', pages: 1 })}
      />
    </>
  );
}

type CallsPageProps = {
  title: string;
  /** The ID of a campaign; null for all. */
  campaignId: string | null;
  settings: CallsSettings;
  onChange: (changes: Partial<CallsSettings>) => void;
  /** Lets the user choose a campaign. */
  actions: ComponentChildren;
  /** The chart above the list. */
  chart: ComponentChildren;
};

/** Shows the calls of a campaign, or of all campaigns in scope, filtered by the core. */
function CallsPage({ title, campaignId, settings, onChange, actions, chart }: CallsPageProps) {
  const { state, apiKey, from, to, pages } = settings;
  const search = useDebounced(settings.search.trim(), typingMs);
  const filter = { state, apiKey, search, ...listDays(from, to) };
  const resource = useCalls(campaignId, filter, pages);
  const isFiltered = state !== null || search !== '' || apiKey !== '' || from !== '' || to !== '';
  const view = resource.state.value.value;
  const calls = view?.calls ?? [];
  const searchedBackTo = view?.searchedBackTo;
  const hasNone = view !== null && calls.length === 0 && searchedBackTo === undefined && !isFiltered;
  const showAll = () => onChange({ ...callsView.initial, campaign: campaignId ?? '' });
  const reset = isFiltered ? { label: 'Show all calls', onReset: showAll } : null;
  const open = getOpenCall(settings);
  const closeDetails = useCallback(() => {
    onChange({ open: '', call: '' });
    focusRow(open?.contactId ?? null);
  }, [open?.contactId]);
  // Closes the details, because the open call might not match the new filters.
  const narrow = (changes: Partial<CallsSettings>) => onChange({ open: '', call: '', pages: 1, ...changes });
  const show = ({ campaign, contactId }: CallView) =>
    onChange(campaignId === null ? { call: `${campaign?.id}/${contactId}` } : { campaign: campaignId, open: contactId });
  return (
    <Page
      title={title}
      actions={
        <>
          {actions}
          {calls.length > 0 && (
            <ExportAllButton
              request={
                campaignId === null
                  ? { name: 'exportAllCalls', input: filter, file: 'calls.csv' }
                  : { name: 'exportCalls', input: { id: campaignId, ...filter }, file: 'calls.csv' }
              }
              noun="call"
            />
          )}
        </>
      }
      head={
        <>
          {chart}
          {!hasNone && <CallFilters calls={calls} settings={settings} onChange={narrow} />}
        </>
      }
      details={
        open && (
          <CallDetails
            key={open.contactId}
            {...open}
            listed={calls.find(({ contactId }) => contactId === open.contactId)}
            onClose={closeDetails}
          />
        )
      }
      resource={resource}
      foot={(calls.length > 0 || searchedBackTo) && <CallsFoot resource={resource} onOlder={() => onChange({ pages: pages + 1 })} />}
    >
      <Loadable resource={resource} noun="calls" isInPage reset={reset}>
        {() =>
          calls.length === 0 ? (
            <NoCalls searchedBackTo={searchedBackTo} reset={reset} />
          ) : (
            <CallTable calls={calls} openId={open?.contactId ?? ''} campaignId={campaignId} onOpen={show} />
          )
        }
      </Loadable>
    </Page>
  );
}

function CallsFoot({ resource, onOlder }: { resource: Resource<CallsView>; onOlder: () => void }) {
  const view = resource.state.value.value;
  if (!view) return null;
  return (
    <>
      <span role="status">
        {describeLoaded(view.calls.length, view, 'call')}, newest first
        {view.searchedBackTo && <SearchedBackTo at={view.searchedBackTo} />}
      </span>
      {view.nextCursor !== null && (
        <span class="end">
          <button type="button" onClick={onOlder}>
            {view.searchedBackTo ? 'Search older calls' : 'Show older calls'}
          </button>
        </span>
      )}
    </>
  );
}

function SearchedBackTo({ at }: { at: string }) {
  return (
    <>
      , searched back to <Time at={at} />
    </>
  );
}

/** @property reset null if nothing is filtered */
type NoCallsProps = { searchedBackTo: string | undefined; reset: Reset | null };

function NoCalls({ searchedBackTo, reset }: NoCallsProps) {
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
  if (reset) {
    return (
      <Empty title="No matching calls">
        <button type="button" onClick={reset.onReset}>
          {reset.label}
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No calls yet">
      <p>Calls that your systems place with an API key appear here.</p>
    </Empty>
  );
}

type CallFiltersProps = { calls: CallsView['calls']; settings: CallsSettings; onChange: (changes: Partial<CallsSettings>) => void };

/** Shows the search and the filters of a list of calls. The core applies them. */
function CallFilters({ calls, settings: { search, state, apiKey, from, to }, onChange }: CallFiltersProps) {
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search</span>
        <input
          type="search"
          placeholder="Contact, phone number, or request ID"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
      <label>
        <span class="visually-hidden">State</span>
        <select
          value={state ?? ''}
          onChange={({ currentTarget }) => onChange({ state: callStates.find((name) => name === currentTarget.value) ?? null })}
        >
          <option value="">Any outcome</option>
          {callStates.map((name) => (
            <option key={name} value={name}>
              {callStateLabels[name]}
            </option>
          ))}
        </select>
      </label>
      <KeyFilter calls={calls} apiKey={apiKey} onChange={(chosen) => onChange({ apiKey: chosen })} />
      <DayRange from={from} to={to} onChange={onChange} />
    </search>
  );
}

type KeyFilterProps = { calls: CallsView['calls']; apiKey: string; onChange: (apiKey: string) => void };

/** Offers the keys that the viewer can see, and revoked keys that placed some of the calls shown. */
function KeyFilter({ calls, apiKey, onChange }: KeyFilterProps) {
  const keys = useFreshResource('keys-of-calls', () => window.callkey.request('listApiKeys', {}), summaryMs);
  const options = labelKeys([...calls.flatMap((call) => call.apiKey ?? []), ...(keys.state.value.value?.apiKeys ?? [])]);
  // The address may name an older key than the ones that are listed.
  if (apiKey !== '' && !options.has(apiKey)) options.set(apiKey, 'Selected key');
  return (
    <label>
      <span class="visually-hidden">Key</span>
      <select value={apiKey} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">Any key</option>
        {[...options].map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

type CallColumn = Column<CallView, string>;

const allColumns: readonly CallColumn[] = [
  { name: 'contact', label: 'Contact', width: 'name', cell: (call) => <Contact call={call} /> },
  {
    name: 'phone',
    label: 'Phone',
    width: 'moment',
    needs: 'wide',
    cell: ({ contact: { name, phone } }) => name !== null && phone !== null && <span class="faint">{phone}</span>,
  },
  { name: 'request', label: 'Request ID', width: 'short', needs: 'wide', cell: ({ requestId }) => <Clip class="faint">{requestId}</Clip> },
  { name: 'campaign', label: 'Campaign', width: 'campaign', needs: 'wide', cell: ({ campaign }) => <Clip>{campaign?.name}</Clip> },
  {
    name: 'state',
    label: 'Outcome',
    width: 'state',
    cell: (call) => (
      <span class="line">
        <CallBadge call={call} />
        <StateDetail call={call} />
      </span>
    ),
  },
  {
    name: 'key',
    label: 'Key',
    width: 'key',
    cell: ({ apiKey }) => (apiKey ? <Clip>{apiKey.name}</Clip> : <span class="faint">Another user’s key</span>),
  },
  { name: 'placed', label: 'Placed', width: 'moment', cell: ({ placedAt }) => <Moment at={placedAt} isInTable /> },
  {
    name: 'duration',
    label: 'Duration',
    width: 'number',
    cell: (call) => {
      const duration = callDurationMs(call);
      return duration === null ? null : formatDuration(duration);
    },
  },
];

function StateDetail({ call }: { call: CallView }) {
  const text = describeState(call, ownZone.value);
  return text === null ? null : <Clip class="faint">{text}</Clip>;
}

/** A campaign's table doesn't repeat the campaign's name. The table of all campaigns has no room for request IDs. */
const campaignColumns = allColumns.filter(({ name }) => name !== 'campaign');
const allCampaignsColumns = allColumns
  .filter(({ name }) => name !== 'request')
  .map((column) => (column.name === 'contact' ? { ...column, cell: (call: CallView) => <ContactInCampaign call={call} /> } : column));

/** @property campaignId null for all campaigns */
type CallTableProps = { calls: readonly CallView[]; campaignId: string | null; openId: string; onOpen: (call: CallView) => void };

function CallTable({ calls, campaignId, openId, onOpen }: CallTableProps) {
  return (
    <DataTable
      label="Calls"
      columns={campaignId === null ? allCampaignsColumns : campaignColumns}
      rows={calls}
      getId={({ contactId }) => contactId}
      getName={({ requestId }) => requestId}
      openId={openId}
      getHref={({ contactId, campaign }) => formatAddress('calls', { campaign: campaignId ?? campaign?.id ?? '', open: contactId })}
      onOpen={onOpen}
    />
  );
}

function Contact({ call: { contact } }: { call: CallView }) {
  return <Clip>{contact.name ?? contact.phone ?? 'Erased'}</Clip>;
}

/** If there's no room for a campaign column, shows the campaign's name under the contact. */
function ContactInCampaign({ call }: { call: CallView }) {
  return (
    <>
      <Contact call={call} />
      <span class="second-line under-wide">
        <Clip>{call.campaign.name}</Clip>
      </span>
    </>
  );
}

const pollMs = 2_000;
const filteredMs = 10_000;
const idleMs = 15_000;

type CachedCalls = { key: string; view: CallsView | null };
type CallsFilter = Omit<RequestInput<'listAllCalls'>, 'cursor'>;

/** Loads the newest matching calls of a campaign, or of all, and keeps them up to date while they're visible. */
function useCalls(campaignId: string | null, filter: CallsFilter, pages: number): Resource<CallsView> {
  const key = JSON.stringify([campaignId, filter, pages]);
  const newest = useRef(key);
  newest.current = key;
  // When the user returns to the screen, it shows the last list, even if the core is unreachable.
  const cached = remember(`${tenancyKey.value}/calls`, (): CachedCalls => ({ key: '', view: null }));
  const load = () => loadPages(campaignId, filter, pages, () => newest.current === key);
  const resource = useResource(load, key, cached.key === key ? cached.view : null);
  const { value, isLoading } = resource.state.value;
  if (value && !isLoading) Object.assign(cached, { key, view: value });
  const isFiltered = filter.state !== null || filter.apiKey !== '' || filter.search !== '';
  usePolling(resource, (isFiltered ? filteredMs : pollMs) * pages);
  return resource;
}

/** Loads the newest pages one after the other and joins them, but stops if the list is no longer needed. */
async function loadPages(
  campaignId: string | null,
  filter: CallsFilter,
  pages: number,
  isCurrent: () => boolean,
): Promise<Result<CallsView>> {
  const calls: CallView[] = [];
  let cursor: string | null = null;
  for (let page = 1; ; page++) {
    const query: RequestInput<'listAllCalls'> = { ...filter, cursor };
    const result: Result<CallsView> =
      campaignId === null
        ? await window.callkey.request('listAllCalls', query)
        : await window.callkey.request('listCalls', { id: campaignId, ...query });
    if (!result.ok) return result;
    calls.push(...result.value.calls);
    cursor = result.value.nextCursor;
    if (cursor === null || page >= pages || !isCurrent()) return { ok: true, value: { ...result.value, calls } };
  }
}

/**
 * Reloads a visible list every two seconds. Longer or filtered lists reload less often, because each page is a request, and a filter reads
 * many calls. While nothing changes, the wait doubles each time, up to 15 seconds. It starts over when the user returns to the window,
 * because they may have just placed a call.
 */
function usePolling(resource: Resource<CallsView>, intervalMs: number): void {
  useEffect(() => {
    let isShown = true;
    let isPolling = false;
    let waitMs = intervalMs;
    let last = '';
    const pollSoon = () => setTimeout(() => void poll(() => resource.refreshIfOlder(0)), waitMs);
    let timer = pollSoon();
    async function poll(load: () => Promise<void>): Promise<void> {
      isPolling = true;
      if (!document.hidden) await load();
      isPolling = false;
      const calls = JSON.stringify(resource.state.peek().value?.calls);
      waitMs = calls === last ? Math.max(intervalMs, Math.min(2 * waitMs, idleMs)) : intervalMs;
      last = calls;
      if (isShown) timer = pollSoon();
    }
    function onReturn(): void {
      waitMs = intervalMs;
      if (isPolling) return;
      clearTimeout(timer);
      void poll(() => resource.refresh());
    }
    window.addEventListener('focus', onReturn);
    return () => {
      isShown = false;
      clearTimeout(timer);
      window.removeEventListener('focus', onReturn);
    };
  }, [resource, intervalMs]);
}

type AllCallsProps = {
  title: string;
  campaigns: CampaignsView;
  settings: CallsSettings;
  onChange: (changes: Partial<CallsSettings>) => void;
  onChoose: (campaignId: string) => void;
};

/** Shows the calls of all campaigns, or the outcomes of each, under a chart of all calls. A click on a campaign's row opens its calls. */
function AllCalls({ title, campaigns, settings, onChange, onChoose }: AllCallsProps) {
  const timeZone = ownZone.value;
  const { search, from, to, sort } = settings;
  const isByCampaign = settings.by === 'campaigns';
  const day = from === to ? from : '';
  const isMany = campaigns.nextCursor !== null;
  const debouncedSearch = useDebounced(search.trim(), typingMs);
  // Ignores the filters that aren't shown with the table of campaigns.
  const filter = isByCampaign ? chartFilter(callsView.initial, '', '') : chartFilter(settings, debouncedSearch, firstChartDay());
  const getPages = (text: string) => outcomePages({ ...filter, timeZone }, text);
  const name = `all-outcomes/${JSON.stringify([filter, timeZone])}`;
  const { resource, pages, isWhole } = usePages(name, getPages, isByCampaign ? search.trim() : '', summaryMs);
  const view = resource.state.value.value;
  const actions = (
    <>
      <ListSwitch by={settings.by} onChoose={(by) => onChange({ by, search: '', call: '', pages: 1 })} />
      <CampaignSelect campaigns={campaigns} chosen={null} onChange={onChoose} />
    </>
  );
  const chart = (
    <>
      <DialerOff />
      {view && <DialerTrouble trouble={view.dialerTrouble} />}
      <OutcomeChart
        summary={view && combineCampaigns(view)}
        day={day}
        filter={filter}
        note={isWhole || !view ? '' : describeCounted(view)}
        onChoose={(chosen) => onChange({ from: chosen, to: chosen, call: '', pages: 1 })}
      />
    </>
  );
  if (!isByCampaign)
    return <CallsPage title={title} campaignId={null} settings={settings} onChange={onChange} actions={actions} chart={chart} />;
  return (
    <Page
      title={title}
      actions={actions}
      head={
        <>
          {chart}
          {isMany && <CampaignSearch search={search} onChange={onChange} />}
        </>
      }
      resource={resource}
      foot={
        <>
          {!isWhole && (
            <span role="status">
              {pluralize(view?.campaigns.length ?? 0, 'campaign')}
              {view?.nextCursor && ' so far'}
            </span>
          )}
          <MoreButton resource={resource} pages={pages} label="Show more campaigns" />
        </>
      }
    >
      <Loadable resource={resource} noun="outcomes" isInPage>
        {(shown) => (
          <Outcomes
            view={isMany && isWhole ? filterCampaigns(shown, search) : shown}
            isMany={isMany}
            day={day}
            sort={sort}
            onSort={(by) => onChange({ sort: by })}
            onChoose={onChoose}
          />
        )}
      </Loadable>
    </Page>
  );
}

/** Says which campaigns the core has found and counted. */
function describeCounted({ campaigns, nextCursor }: OutcomesView): string {
  return nextCursor === null ? 'Counts only matching campaigns' : `Counts only the first ${pluralize(campaigns.length, 'campaign')}`;
}

const listLabels = { calls: 'List', campaigns: 'By campaign' } as const;

function ListSwitch({ by, onChoose }: { by: CallsSettings['by']; onChoose: (by: CallsSettings['by']) => void }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons.
    <div class="chips" role="group" aria-label="Show">
      {(['calls', 'campaigns'] as const).map((name) => (
        <button key={name} type="button" aria-pressed={name === by} onClick={() => onChoose(name)}>
          {listLabels[name]}
        </button>
      ))}
    </div>
  );
}

function CampaignSearch({ search, onChange }: { search: string; onChange: (changes: { search: string }) => void }) {
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search by campaign or account</span>
        <input
          type="search"
          placeholder="Search by campaign or account"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
    </search>
  );
}

/** A page of campaigns with their outcomes. */
type OutcomesView = CampaignsView & AllCallsSummaryView;

type OutcomesFilter = ReturnType<typeof chartFilter> & { timeZone: string };

function outcomePages(filter: OutcomesFilter, search: string): Pages<OutcomesView> {
  return {
    async load(cursor) {
      const [campaigns, summary] = await Promise.all([
        window.callkey.request('listCampaigns', { search, cursor }),
        window.callkey.request('summarizeAllCalls', { ...filter, campaignSearch: search, cursor }),
      ]);
      if (!campaigns.ok) return campaigns;
      return summary.ok ? { ok: true, value: { ...campaigns.value, ...summary.value } } : summary;
    },
    join: (view, next) => ({
      campaigns: [...view.campaigns, ...next.campaigns],
      nextCursor: next.nextCursor,
      dialerTrouble: next.dialerTrouble,
      days: view.days.map(({ day, campaigns }, index) => ({ day, campaigns: [...campaigns, ...(next.days[index]?.campaigns ?? [])] })),
    }),
    count: ({ campaigns }) => campaigns.length,
    empty: { campaigns: [], nextCursor: null, dialerTrouble: null, days: [] },
  };
}

/** Returns the matching campaigns. Called only once all campaigns are loaded. */
function filterCampaigns(view: OutcomesView, search: string): OutcomesView {
  const query = foldText(search.trim());
  const campaigns = view.campaigns.filter(({ name, account }) => [name, account.name].some((text) => foldText(text).includes(query)));
  return { ...view, campaigns };
}

type OutcomesProps = { view: OutcomesView; isMany: boolean; day: string } & Omit<CampaignTableProps, 'rows'>;

function Outcomes({ view, isMany, day, ...table }: OutcomesProps) {
  if (view.campaigns.length === 0) return <Empty title="No matching campaigns" />;
  if (!isMany && view.days.every((each) => each.campaigns.length === 0)) {
    return (
      <Empty title="No calls in the last 30 days">
        <p>Choose a campaign to see its older calls.</p>
      </Empty>
    );
  }
  const outcomes = outcomesByCampaign(view, day);
  const rows = view.campaigns.map((campaign) => {
    const counts = outcomes(campaign.id);
    return { ...campaign, counts, total: sum(counts) };
  });
  return <CampaignTable rows={rows} {...table} />;
}

type CampaignRow = CampaignsView['campaigns'][number] & { counts: readonly number[]; total: number };

const groupColumns: readonly Column<CampaignRow, string>[] = outcomeGroups.map(({ name, label }, index) => ({
  name,
  label,
  width: 'count',
  ...((name === 'undialed' || name === 'waiting') && ({ needs: 'wide' } as const)),
  cell: ({ counts }) => <Count value={counts[index] ?? 0} />,
}));

const columns: readonly Column<CampaignRow, string>[] = [
  { name: 'name', label: 'Campaign', width: 'name', cell: ({ name }) => <Clip>{name}</Clip> },
  { name: 'account', label: 'Account', width: 'text', cell: ({ account }) => <Clip>{account.name}</Clip> },
  { name: 'total', label: 'Calls', width: 'number', cell: ({ total }) => <Count value={total} /> },
  ...groupColumns,
];

type CampaignTableProps = {
  rows: readonly CampaignRow[];
  sort: Sort<string>;
  onSort: (sort: Sort<string>) => void;
  onChoose: (campaignId: string) => void;
};

function CampaignTable({ rows, sort, onSort, onChoose }: CampaignTableProps) {
  const isText = (column: string) => column === 'name' || column === 'account';
  const sortValue = ({ name, account, total, counts }: CampaignRow) => {
    if (sort.column === 'name') return name;
    if (sort.column === 'account') return account.name;
    return counts[outcomeGroups.findIndex((group) => group.name === sort.column)] ?? total;
  };
  return (
    <DataTable
      label="Campaigns"
      columns={columns}
      rows={sorted(rows, sortValue, sort.isDescending)}
      getId={({ id }) => id}
      getName={({ name }) => name}
      sort={sort}
      onSort={(column) => onSort(sortAfterPress(sort, column, !isText(column)))}
      getHref={({ id }) => formatAddress('calls', { campaign: id })}
      onOpen={({ id }) => onChoose(id)}
    />
  );
}

function Count({ value }: { value: number }) {
  return <span class={value === 0 ? 'faint' : undefined}>{formatNumber(value)}</span>;
}

/** Explains that calls stay queued because the server has no dialer, and how to get them dialed. */
function DialerOff() {
  if (session.value?.dialer !== 'off') return null;
  return (
    <p class="notice" role="note">
      <span>
        No provider is connected, so calls stay queued. To simulate the calls instead, restart the server with{' '}
        <code>DIALER=simulated npm start</code>.
      </span>
    </p>
  );
}

/** Shows a notice while the provider isn't accepting calls. */
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
