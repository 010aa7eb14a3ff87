import type { CallView } from '#contract/console.ts';
import { Clip } from '../../components/table/clip.tsx';
import { DataTable } from '../../components/table/data-table.tsx';
import type { Column } from '../../components/table/table-model.ts';
import { Moment } from '../../components/time.tsx';
import { addressOf } from '../../state/address/addresses.ts';
import { formatDuration } from '../../state/format/format-time.ts';
import { callStateLabels, callStateTones } from '../../state/format/labels.ts';
import { callDurationMs } from './call-list.ts';

type CallColumn = Column<CallView, string>;

const columns: readonly CallColumn[] = [
  { name: 'contact', label: 'Contact', width: 'name', cell: ({ contact }) => <Clip>{contact.name ?? contact.phone ?? 'Erased'}</Clip> },
  {
    name: 'phone',
    label: 'Phone',
    width: 'moment',
    needs: 'wide',
    cell: ({ contact: { name, phone } }) => name !== null && phone !== null && <span class="faint">{phone}</span>,
  },
  { name: 'request', label: 'Request ID', width: 'short', needs: 'wide', cell: ({ requestId }) => <Clip class="faint">{requestId}</Clip> },
  {
    name: 'state',
    label: 'Outcome',
    width: 'state',
    cell: (call) => (
      <span class="line">
        <CallBadge call={call} />
        {call.detail !== null && <Clip class="faint">{call.detail}</Clip>}
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

type CallTableProps = { calls: readonly CallView[]; campaignId: string; openId: string; onOpen: (call: CallView) => void };

export function CallTable({ calls, campaignId, openId, onOpen }: CallTableProps) {
  return (
    <DataTable
      label="Calls"
      columns={columns}
      rows={calls}
      idOf={({ contactId }) => contactId}
      nameOf={({ requestId }) => requestId}
      openId={openId}
      hrefOf={({ contactId }) => addressOf('calls', { campaign: campaignId, open: contactId })}
      onOpen={onOpen}
    />
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
