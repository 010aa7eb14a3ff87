import type { AllCallsSummaryView, CampaignsView } from '#contract/console.ts';
import { Clip } from '../components/clip.tsx';
import { DataTable } from '../components/data-table.tsx';
import { Empty, Loadable, useFreshResource } from '../components/loadable.tsx';
import { OutcomeChart } from '../components/outcome-chart.tsx';
import { Freshness, Page } from '../components/page.tsx';
import type { Column } from '../components/table-model.ts';
import { useView } from '../components/use-view.ts';
import { sum } from '../state/charts.ts';
import { ownZone } from '../state/clock.ts';
import { formatNumber } from '../state/format.ts';
import { chosenDay, outcomeGroups, outcomesOf, summaryMs, summaryOfAll } from '../state/outcomes.ts';
import { type Sort, sortAfterPress, sorted } from '../state/sorting.ts';
import { CampaignSelect } from './campaign-select.tsx';

type AllCallsProps = { title: string; campaigns: CampaignsView; onChoose: (campaignId: string) => void };

/** What became of the calls of all campaigns together, and of each. A campaign's row leads to its calls. */
export function AllCalls({ title, campaigns, onChoose }: AllCallsProps) {
  const zone = ownZone.value;
  const resource = useFreshResource(`all-outcomes/${zone}`, () => window.callkey.summarizeAllCalls(zone), summaryMs);
  return (
    <Page
      title={title}
      actions={<CampaignSelect campaigns={campaigns} value="" onChange={onChoose} />}
      foot={<Freshness resource={resource} />}
    >
      <Loadable resource={resource} what="the outcomes">
        {(view) => <Outcomes campaigns={campaigns} view={view} onChoose={onChoose} />}
      </Loadable>
    </Page>
  );
}

type OutcomesProps = { campaigns: CampaignsView; view: AllCallsSummaryView; onChoose: (campaignId: string) => void };

function Outcomes({ campaigns, view, onChoose }: OutcomesProps) {
  const [{ day }] = useView('outcomes', chosenDay);
  if (view.days.every((each) => each.campaigns.length === 0)) {
    return (
      <Empty title="No calls in 30 days">
        <p>Choose a campaign to see its older calls.</p>
      </Empty>
    );
  }
  const rows = campaigns.campaigns.map((campaign) => {
    const counts = outcomesOf(view, campaign.id, day);
    return { ...campaign, counts, total: sum(counts) };
  });
  return (
    <>
      <OutcomeChart summary={summaryOfAll(view)} />
      <CampaignTable rows={rows} onChoose={onChoose} />
    </>
  );
}

type CampaignRow = CampaignsView['campaigns'][number] & { counts: readonly number[]; total: number };

const groupColumns: readonly Column<CampaignRow, string>[] = outcomeGroups.map(({ name, label }, index) => ({
  name,
  label,
  width: 'count',
  ...((name === 'undialed' || name === 'waiting') && ({ needs: 'wide' } as const)),
  cell: ({ counts }) => <Count of={counts[index] ?? 0} />,
}));

const columns: readonly Column<CampaignRow, string>[] = [
  { name: 'name', label: 'Campaign', width: 'name', cell: ({ name }) => <Clip>{name}</Clip> },
  { name: 'account', label: 'Account', width: 'text', cell: ({ account }) => <Clip>{account.name}</Clip> },
  { name: 'total', label: 'Calls', width: 'number', cell: ({ total }) => <Count of={total} /> },
  ...groupColumns,
];

const byTotal: { sort: Sort<string> } = { sort: { column: 'total', isDescending: true } };

function CampaignTable({ rows, onChoose }: { rows: readonly CampaignRow[]; onChoose: (campaignId: string) => void }) {
  const [{ sort }, change] = useView('campaigns', byTotal);
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
      idOf={({ id }) => id}
      nameOf={({ name }) => name}
      sort={sort}
      onSort={(column) => change({ sort: sortAfterPress(sort, column, !isText(column)) })}
      onOpen={({ id }) => onChoose(id)}
    />
  );
}

function Count({ of }: { of: number }) {
  return <span class={of === 0 ? 'faint' : undefined}>{formatNumber(of)}</span>;
}
