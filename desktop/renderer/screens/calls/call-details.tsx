import type { CallDetailsView, CallView } from '#contract/console/calls.ts';
import { OwnerTag } from '../../components/api-key.tsx';
import { CallBadge } from '../../components/call.tsx';
import { Copyable, Details, type Fact, Facts, NoDetails } from '../../components/details.tsx';
import { Loadable, useList } from '../../components/list.tsx';
import { Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { callDurationMs, describeHeld } from '../../state/calls.ts';
import { ownZone } from '../../state/clock.ts';
import { formatDuration, formatNumber } from '../../state/format.ts';
import { answererLabels, capitalized } from '../../state/labels.ts';

type CallDetailsProps = {
  campaignId: string;
  contactId: string;
  /** The call, if it's in the list. An address may name an older one. */
  listed: CallView | undefined;
  onClose: () => void;
};

/** Shows everything that the console knows about a call. */
export function CallDetails({ campaignId, contactId, listed, onClose }: CallDetailsProps) {
  const list = useList({ key: `call/${contactId}`, load: () => window.callkey.request('showCall', { id: campaignId, contactId }) });
  const { view, failure } = list.state.value;
  const call = listed ?? view?.call;
  const details = { rowId: contactId, onClose };
  if (!call) return failure && <NoDetails title="Call" {...{ ...details, failure }} gone="This call doesn’t exist in this campaign." />;
  const { contact } = call;
  return (
    <Details title={contact.name ?? contact.phone ?? 'Erased'} badge={<CallBadge call={call} />} {...details}>
      <Facts facts={buildFacts(call)} />
      <Loadable list={list} noun="details">
        {(view) => (
          <>
            <Dialing view={view} />
            <Variables view={view} />
          </>
        )}
      </Loadable>
    </Details>
  );
}

function buildFacts(call: CallView): Fact[] {
  const { campaign, contact, requestId, contactId, detail, placedAt, dialedAt, endedAt, answeredBy, apiKey } = call;
  const duration = callDurationMs(call);
  const held = describeHeld(call, ownZone.value);
  return [
    ...(held === null ? [] : [[call.heldFor === null ? 'Calling hours' : 'Waiting', capitalized(held)] as const]),
    ...(detail === null ? [] : [['Detail', <bdi key="detail">{detail}</bdi>] as const]),
    ['Phone', contact.phone ?? 'Erased'],
    [
      'Campaign',
      <a key="campaign" href={formatAddress('calls', { campaign: campaign.id })}>
        <bdi>{campaign.name}</bdi>
      </a>,
    ],
    ['Placed', <Moment key="placed" at={placedAt} />],
    ...momentAt('Dialed', dialedAt),
    ...momentAt('Ended', endedAt),
    ...(answeredBy === null ? [] : [['Answered by', answererLabels[answeredBy]] as const]),
    ...(duration === null ? [] : [['Duration', formatDuration(duration)] as const]),
    [
      'Key',
      apiKey ? (
        <span key="key">
          <a href={formatAddress('api-keys', { open: apiKey.id })}>
            <bdi>{apiKey.name}</bdi>
          </a>{' '}
          <OwnerTag owner={apiKey.owner} />
        </span>
      ) : (
        'Another user’s key'
      ),
    ],
    ['Request ID', <Copyable key="request" text={requestId} noun="request ID" />],
    ['Contact ID', <Copyable key="contact" text={contactId} noun="contact ID" />],
  ];
}

/** Shows when the call may be dialed, and the dialer's attempts. */
function Dialing({ view }: { view: CallDetailsView }) {
  const { notBefore, notAfter, timeZone, attempts, firstAttemptAt, nextAttemptAt, toldLateAt } = view;
  const facts: Fact[] = [
    ...momentAt('Not before', notBefore),
    ...momentAt('Not after', notAfter),
    ...(timeZone === null ? [] : [['Time zone', timeZone] as const]),
    ...(attempts === 0 ? [] : [['Attempts', formatNumber(attempts)] as const]),
    ...momentAt('First attempt', attempts > 1 ? firstAttemptAt : null),
    ...momentAt('Next attempt', nextAttemptAt),
    ...momentAt('Reported late', toldLateAt),
  ];
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>Dialing</h3>
      <Facts facts={facts} />
    </section>
  );
}

function Variables({ view: { variables } }: { view: CallDetailsView }) {
  const facts = Object.entries(variables ?? {});
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>Variables</h3>
      <Facts facts={facts} />
    </section>
  );
}

function momentAt(term: string, at: string | null): Fact[] {
  return at === null ? [] : [[term, <Moment key={term} at={at} />]];
}
