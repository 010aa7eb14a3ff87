import type { CallView } from '#contract/console.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { Details, Facts } from '../components/details.tsx';
import { Moment } from '../components/time.tsx';
import { callDurationMs } from '../state/call-list.ts';
import { formatDuration } from '../state/format-time.ts';
import { OwnerTag } from './api-key-table.tsx';
import { CallBadge } from './call-table.tsx';

/** All that the console knows of one call. */
export function CallDetails({ call, onClose }: { call: CallView; onClose: () => void }) {
  const { contact, requestId, contactId, detail, placedAt, dialedAt, endedAt, apiKey } = call;
  const duration = callDurationMs(call);
  return (
    <Details title={contact.name ?? contact.phone ?? 'Erased'} badge={<CallBadge call={call} />} onClose={onClose}>
      <Facts
        facts={[
          ...(detail === null ? [] : ([['Detail', <bdi key="detail">{detail}</bdi>]] as const)),
          ['Phone', contact.phone ?? 'Erased'],
          ['Placed', <Moment key="placed" at={placedAt} />],
          ...(dialedAt === null ? [] : ([['Dialed', <Moment key="dialed" at={dialedAt} />]] as const)),
          ...(endedAt === null ? [] : ([['Ended', <Moment key="ended" at={endedAt} />]] as const)),
          ...(duration === null ? [] : ([['Duration', formatDuration(duration)]] as const)),
          [
            'Key',
            apiKey ? (
              <span key="key">
                <bdi>{apiKey.name}</bdi> <OwnerTag owner={apiKey.owner} />
              </span>
            ) : (
              'Somebody else’s'
            ),
          ],
          ['Request id', <Copyable key="request" text={requestId} what="Request id" />],
          ['Contact id', <Copyable key="contact" text={contactId} what="Contact id" />],
        ]}
      />
    </Details>
  );
}

function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} what={what} />
    </span>
  );
}
