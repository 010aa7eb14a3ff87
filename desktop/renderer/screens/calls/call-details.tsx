import type { ComponentChildren } from 'preact';
import type { CallDetailsView, CallView } from '#contract/console/calls.ts';
import { OwnerTag } from '../../components/api-key.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Details, Facts } from '../../components/details.tsx';
import { Loadable, useFreshResource } from '../../components/list.tsx';
import { Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { callDurationMs, describeHeld } from '../../state/calls.ts';
import { ownZone } from '../../state/clock.ts';
import { describeFailure, isNotFound } from '../../state/failure-text.ts';
import { formatDuration, formatNumber } from '../../state/format.ts';
import { callStateLabels, callStateTones, capitalized } from '../../state/labels.ts';

type CallDetailsProps = {
  campaignId: string;
  contactId: string;
  /** The call, if it's in the list. An address may name an older one. */
  listed: CallView | undefined;
  onClose: () => void;
};

type Fact = readonly [string, ComponentChildren];

/** Shows everything that the console knows about a call. */
export function CallDetails({ campaignId, contactId, listed, onClose }: CallDetailsProps) {
  const resource = useFreshResource(`call/${contactId}`, () => window.callkey.request('showCall', { id: campaignId, contactId }));
  const call = listed ?? resource.state.value.value?.call;
  if (!call) {
    const { failure } = resource.state.value;
    if (!failure) return null;
    return (
      <Details title="Call" onClose={onClose}>
        <p>{isNotFound(failure) ? 'This call doesn’t exist in this campaign.' : describeFailure(failure)}</p>
      </Details>
    );
  }
  const { contact } = call;
  return (
    <Details title={contact.name ?? contact.phone ?? 'Erased'} badge={<CallBadge call={call} />} onClose={onClose}>
      <Facts facts={buildFacts(call)} />
      <Loadable resource={resource} noun="details">
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
  const { contact, requestId, contactId, detail, placedAt, dialedAt, endedAt, apiKey } = call;
  const duration = callDurationMs(call);
  const held = describeHeld(call, ownZone.value);
  return [
    ...(held === null ? [] : [['Calling hours', capitalized(held)] as const]),
    ...(detail === null ? [] : [['Detail', <bdi key="detail">{detail}</bdi>] as const]),
    ['Phone', contact.phone ?? 'Erased'],
    ['Placed', <Moment key="placed" at={placedAt} />],
    ...momentAt('Dialed', dialedAt),
    ...momentAt('Ended', endedAt),
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
    ['Request ID', <Copyable key="request" text={requestId} what="request ID" />],
    ['Contact ID', <Copyable key="contact" text={contactId} what="contact ID" />],
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

function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} noun={what} />
    </span>
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
