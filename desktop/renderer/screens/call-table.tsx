import type { CallView } from '#contract/console.ts';
import { Time } from '../components/time.tsx';
import { callStateLabels, outcomeLabels } from '../state/labels.ts';
import { OwnerTag } from './api-key-table.tsx';

export function CallTable({ calls }: { calls: readonly CallView[] }) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th scope="col">Contact</th>
            <th scope="col">State</th>
            <th scope="col">Outcome</th>
            <th scope="col">Key</th>
            <th scope="col">Placed</th>
            <th scope="col">Dialed</th>
            <th scope="col">Ended</th>
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <CallRow key={call.contactId} call={call} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CallRow({ call }: { call: CallView }) {
  const { contact, apiKey } = call;
  const outcome = outcomeLabels[call.state];
  return (
    <tr>
      <th scope="row">
        <span class="name">{contact.name ?? contact.phone ?? 'Erased'}</span>
        {contact.name !== null && contact.phone !== null && <span class="caption">{contact.phone}</span>}
        <span class="caption">{call.requestId}</span>
      </th>
      <td>
        <span class={`badge ${call.state}`}>{callStateLabels[call.state]}</span>
      </td>
      <td>
        {outcome === undefined ? <span class="faint">–</span> : <span>{outcome}</span>}{' '}
        {call.simulated && <span class="tag">Simulated</span>}
        {call.detail !== null && <span class="caption">{call.detail}</span>}
      </td>
      <td>
        {apiKey ? (
          <>
            {apiKey.name} {!apiKey.owner.isYou && <OwnerTag owner={apiKey.owner} />}
          </>
        ) : (
          <span class="faint">Somebody else’s</span>
        )}
      </td>
      <td>
        <Time at={call.placedAt} />
      </td>
      <td>{call.dialedAt === null ? <span class="faint">–</span> : <Time at={call.dialedAt} />}</td>
      <td>{call.endedAt === null ? <span class="faint">–</span> : <Time at={call.endedAt} />}</td>
    </tr>
  );
}
