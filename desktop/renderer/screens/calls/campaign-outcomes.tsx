import type { AllCallsSummaryView } from '#contract/console/calls.ts';
import type { CampaignsView } from '#contract/console/directory.ts';
import { foldText } from '#contract/text/text.ts';
import { sum } from '../../components/charts/charts.ts';
import { OutcomeChart } from '../../components/charts/outcome-chart.tsx';
import { combineCampaigns, outcomeGroups, outcomesByCampaign, summaryMs } from '../../components/charts/outcomes.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { Empty, Loadable } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { Clip } from '../../components/table/clip.tsx';
import { DataTable } from '../../components/table/data-table.tsx';
import { MoreButton } from '../../components/table/more-button.tsx';
import type { Column } from '../../components/table/table-model.ts';
import { typingMs, usePages } from '../../components/use-pages.ts';
import { formatAddress } from '../../state/address/addresses.ts';
import { firstChartDay, ownZone } from '../../state/clock.ts';
import { formatNumber, pluralize } from '../../state/format/format.ts';
import { type Sort, sortAfterPress, sorted } from '../../state/format/sorting.ts';
import type { Pages } from '../../state/loading/pages.ts';
import { CallsPage } from './calls-page.tsx';
import { type CallsSettings, callsView, chartFilter } from './calls-view.ts';
import { CampaignSelect } from './campaign-select.tsx';
import { DialerOff, DialerTrouble } from './dialer-notices.tsx';

type AllCallsProps = {
  title: string;
  campaigns: CampaignsView;
  settings: CallsSettings;
  onChange: (changes: Partial<CallsSettings>) => void;
  onChoose: (campaignId: string) => void;
};

/** Shows the calls of all campaigns, or the outcomes of each, under a chart of all calls. A click on a campaign's row opens its calls. */
export function AllCalls({ title, campaigns, settings, onChange, onChoose }: AllCallsProps) {
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
