import { useContext } from 'preact/hooks';
import type { CallDetailsView, CallView } from '#contract/console/calls.ts';
import { formatCount } from '#contract/text/count.ts';
import { OwnerTag } from '../../components/api-key.tsx';
import { CallBadge } from '../../components/call.tsx';
import { Copyable, Details, type Fact, FactSection, Facts, NoDetails } from '../../components/details.tsx';
import { Loadable, useList } from '../../components/list.tsx';
import { Stops } from '../../components/stops.tsx';
import { Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { callDurationMs, describeDetail, describeHeld } from '../../state/calls.ts';
import { ownZone } from '../../state/clock.ts';
import { formatDuration } from '../../state/format.ts';
import { answererLabels, capitalized } from '../../state/labels.ts';
import { isStopped } from '../../state/protection.ts';
import { session } from '../../state/session.ts';

type CallDetailsProps = {
  campaignId: string;
  contactId: string;
  keyLabels: ReadonlyMap<string, string>;
  /** The account of the campaign, if it's known. */
  accountId: string | undefined;
  /** The call, if it's in the list. An address may name an older one. */
  listed: CallView | undefined;
  onClose: () => void;
};

export function CallDetails({ campaignId, contactId, keyLabels, accountId, listed, onClose }: CallDetailsProps) {
  const stops = useContext(Stops)?.state.value.view?.stops ?? [];
  const list = useList({ key: `call/${contactId}`, load: () => window.callkey.request('showCall', { id: campaignId, contactId }) });
  const { view, failure } = list.state.value;
  const call = listed ?? view?.call;
  const details = { rowId: contactId, onClose };
  if (!call) return failure && <NoDetails title="Call" {...{ ...details, failure }} gone="This call doesn’t exist in this campaign." />;
  const { contact } = call;
  return (
    <Details title={contact.name ?? contact.phone ?? 'Erased'} badge={<CallBadge call={call} />} {...details}>
      <Facts facts={buildFacts(call, keyLabels)} />
      <Loadable list={list} noun="details">
        {(view) => (
          <>
            <FactSection title="Dialing" facts={buildDialingFacts(view, call, isStopped(stops, campaignId, accountId))} />
            <FactSection title="Variables" facts={Object.entries(view.variables ?? {})} />
          </>
        )}
      </Loadable>
    </Details>
  );
}

function buildFacts(call: CallView, keyLabels: ReadonlyMap<string, string>): Fact[] {
  const { campaign, contact, requestId, contactId, placedAt, dialedAt, endedAt, answeredBy, apiKey } = call;
  const duration = callDurationMs(call);
  const held = describeHeld(call, ownZone.value);
  const detail = describeDetail(call);
  return [
    [call.heldFor === null ? 'Calling hours' : 'Waiting', held && capitalized(held)],
    ['Detail', detail && <bdi key="detail">{detail}</bdi>],
    ['Phone', contact.phone ?? 'Erased'],
    [
      'Campaign',
      <a key="campaign" href={formatAddress('calls', { campaign: campaign.id })}>
        <bdi>{campaign.name}</bdi>
      </a>,
    ],
    ['Placed', <Moment key="placed" at={placedAt} />],
    ['Dialed', dialedAt && <Moment key="dialed" at={dialedAt} />],
    ['Ended', endedAt && <Moment key="ended" at={endedAt} />],
    ['Answered by', answeredBy && answererLabels[answeredBy]],
    ['Duration', duration !== null && formatDuration(duration)],
    [
      'Key',
      apiKey ? (
        <span key="key">
          <a href={formatAddress('api-keys', { open: apiKey.id })}>
            <bdi>{keyLabels.get(apiKey.id) ?? apiKey.name}</bdi>
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

/** @param call loaded with the list, so it may have ended since the details were loaded */
function buildDialingFacts(view: CallDetailsView, call: CallView, hasStop: boolean): Fact[] {
  const { notBefore, notAfter, timeZone, attempts, firstAttemptAt, nextAttemptAt, toldLateAt } = view;
  const isHeldByStop = call.heldFor === 'stop' || (hasStop && (nextAttemptAt !== null || call.heldFor === 'pace'));
  const hasProvider = session.value?.dialer !== 'off';
  const attempt =
    nextAttemptAt && (hasProvider ? <Moment key="next" at={nextAttemptAt} mayBeFuture /> : 'Not until a provider is connected');
  const nextAttempt = isHeldByStop ? 'Not while dialing is stopped' : attempt;
  return [
    ['Not before', notBefore && <Moment key="before" at={notBefore} mayBeFuture />],
    ['Not after', notAfter && <Moment key="after" at={notAfter} mayBeFuture />],
    ['Time zone', timeZone],
    ['Attempts', attempts > 0 && formatCount(attempts)],
    ['First attempt', attempts > 1 && firstAttemptAt && <Moment key="first" at={firstAttemptAt} />],
    ['Next attempt', call.endedAt === null && nextAttempt],
    ['Reported late', toldLateAt && <Moment key="late" at={toldLateAt} />],
  ];
}
