import type { CallView } from '#contract/console/calls.ts';
import { Clip } from '../../components/table/clip.tsx';
import { DataTable } from '../../components/table/data-table.tsx';
import type { Column } from '../../components/table/table-model.ts';
import { Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { ownZone } from '../../state/clock.ts';
import { formatDuration } from '../../state/format/format-time.ts';
import { callStateLabels, callStateTones } from '../../state/format/labels.ts';
import { callDurationMs } from './call-duration.ts';
import { describeState } from './held.ts';

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

export function CallTable({ calls, campaignId, openId, onOpen }: CallTableProps) {
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

/** Shows the outcome of a call, and whether it's simulated. */
export function CallBadge({ call: { state, simulated } }: { call: CallView }) {
  return (
    <>
      <span class={`badge ${callStateTones[state]}`}>{callStateLabels[state]}</span>
      {simulated && <span class="badge">Simulated</span>}
    </>
  );
}
