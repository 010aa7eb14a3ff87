import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiKeyDetailsView, ApiKeyView } from '#contract/console/api-keys.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import type { Failure, Result } from '../../../ipc.ts';
import { AccessScope, ExpiryBadge, OwnerTag, RefusedBadge } from '../../components/api-key.tsx';
import { DayChart } from '../../components/charts.tsx';
import { Copyable, Details, Events, type Fact, Facts, NoDetails } from '../../components/details.tsx';
import { Field, FormDialog, TextField } from '../../components/form.tsx';
import { Loadable, useList } from '../../components/list.tsx';
import { ShortTable } from '../../components/table.tsx';
import { Moment, toExpiry } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { addressesProblem, callsPerDayProblem, changedLimits, lockOutWarning, shortId, toDraft } from '../../state/api-keys.ts';
import { stack, sum } from '../../state/calls.ts';
import { ownZone } from '../../state/clock.ts';
import { isNotFound, lookUpChange } from '../../state/failure-text.ts';
import { formatInstant, formatIsoDay } from '../../state/format.ts';
import { capitalized } from '../../state/labels.ts';
import { FirstCall } from './create-api-key.tsx';

type ApiKeyDetailsProps = {
  apiKey: ApiKeyView;
  /** Other keys with the same name: its replacement, or the key that it replaces. */
  sameNamed: readonly ApiKeyView[];
  onReplace: (apiKey: ApiKeyView) => void;
  onLimited: (apiKey: ApiKeyView) => void;
  onRevoke: (apiKey: ApiKeyView) => void;
  /** Called if the key has been used for the first time. */
  onUsed: () => void;
  onClose: () => void;
};

export function ApiKeyDetails({ apiKey, sameNamed, onReplace, onLimited, onRevoke, onUsed, onClose }: ApiKeyDetailsProps) {
  const { id, name } = apiKey;
  const zone = ownZone.value;
  const list = useList({ key: `api-key/${id}/${zone}`, load: () => window.callkey.request('showApiKey', { id, timeZone: zone }) });
  const { view } = list.state.value;
  const [isLimiting, setLimiting] = useState(false);
  const [isUnused] = useState(apiKey.lastUsedAt === null && apiKey.owner?.isYou !== false && !apiKey.expired);
  return (
    <Details
      title={name}
      rowId={id}
      badge={
        <span class="line">
          <RefusedBadge apiKey={apiKey} />
          <ExpiryBadge apiKey={apiKey} />
        </span>
      }
      onClose={onClose}
    >
      <div class="row">
        {/* With the limits as loaded here, because the list doesn't show a change until it has reloaded. */}
        <button type="button" onClick={() => onReplace(view?.apiKey ?? apiKey)}>
          Replace…
        </button>
        {view && (
          <button type="button" onClick={() => setLimiting(true)}>
            Limit…
          </button>
        )}
        <a class="button" href={formatAddress('calls', { apiKey: id })}>
          Show calls
        </a>
        <button type="button" class="warns" onClick={() => onRevoke(apiKey)}>
          Revoke…
        </button>
      </div>
      <Facts facts={buildFacts(apiKey, view)} />
      {isUnused && <FirstCall apiKey={apiKey} onUsed={onUsed} />}
      {sameNamed.length > 0 && <KeysWithSameName keys={[apiKey, ...sameNamed]} />}
      <Loadable list={list} noun="usage">
        {(view) => (
          <>
            <Usage view={view} />
            <Events events={view.activity} about={id} />
          </>
        )}
      </Loadable>
      {isLimiting && view && (
        <LimitApiKey
          view={view}
          onChanged={(changed) => {
            setLimiting(false);
            list.change({ ...view, apiKey: changed });
            void list.refresh();
            onLimited(changed);
          }}
          onClose={() => {
            setLimiting(false);
            void list.refresh();
          }}
        />
      )}
    </Details>
  );
}

/** Shows how a key ended. @property failure why the key itself can't be shown */
export function EndedApiKey({ id, failure, onClose }: { id: string; failure: Failure; onClose: () => void }) {
  const isGone = isNotFound(failure);
  const load = () => window.callkey.request('showRevokedApiKey', { id });
  const list = useList({ key: `ended/${id}`, every: null, load: isGone ? load : null });
  const { view, failure: reason } = list.state.value;
  const details = { rowId: id, onClose };
  if (!isGone || reason || !view) {
    const text = 'This key doesn’t exist, or you don’t have access to it.';
    return (!isGone || reason) && <NoDetails title="API key" {...details} failure={isGone && reason ? reason : failure} gone={text} />;
  }
  const { apiKey, revokedAt, revokedBy, revokedByYou, reason: why, activity } = view;
  return (
    <Details title={apiKey.name} badge={<span class="badge bad">Revoked</span>} {...details}>
      <div class="row">
        <a class="button" href={formatAddress('calls', { apiKey: id })}>
          Show calls
        </a>
      </div>
      <Facts
        facts={[
          ['Revoked', <Moment key="revoked" at={revokedAt} />],
          ['By', <bdi key="by">{revokedByYou ? 'You' : (revokedBy ?? 'No longer recorded')}</bdi>],
          ['Reason', <bdi key="why">{why === null ? 'Not specified' : capitalized(why)}</bdi>],
          ['Owner', apiKey.owner ? <OwnerTag key="owner" owner={apiKey.owner} /> : null],
          ['ID', <Copyable key="id" text={id} noun="ID" />],
        ]}
      />
      <Events events={activity} about={id} />
    </Details>
  );
}

function buildFacts(apiKey: ApiKeyView, view: ApiKeyDetailsView | null): Fact[] {
  const { id, owner, createdAt, lastUsedAt } = apiKey;
  return [
    [
      'Owner',
      owner ? (
        <span key="owner">
          <OwnerTag owner={owner} />
          {owner.email !== undefined && <bdi class="caption">{owner.email}</bdi>}
        </span>
      ) : null,
    ],
    ['Access', view && <AccessScope key="access" scope={view.reach} isSentence />],
    [
      'Created',
      <span key="created">
        <Moment at={createdAt} />
        {view && <span class="caption">in {view.createdIn.name}</span>}
      </span>,
    ],
    ['Expiry', <Expiry key="expiry" apiKey={apiKey} />],
    [
      'Last used',
      <span key="used">
        {lastUsedAt === null ? 'Never' : <Moment at={lastUsedAt} />}
        {view?.lastUsedAddress && <span class="caption">from {view.lastUsedAddress}</span>}
      </span>,
    ],
    ...(view ? limitFacts(view) : []),
    ['ID', <Copyable key="id" text={id} noun="ID" />],
  ];
}

function limitFacts({ apiKey: { addresses, callsPerDay }, today }: ApiKeyDetailsView): Fact[] {
  return [
    ['Accepted from', addresses === null ? 'Any address' : <code key="addresses">{addresses.join(', ')}</code>],
    [
      'Calls per day',
      callsPerDay === null ? (
        'No limit'
      ) : (
        <span key="calls">
          {formatCount(callsPerDay)}
          {today && (
            <span class="caption">
              {formatCount(Math.max(0, callsPerDay - today.placed))} left until <Moment at={today.resetsAt} mayBeFuture />
              {today.countedFrom !== undefined && (
                <>
                  , counted from <Moment at={today.countedFrom} />
                </>
              )}
            </span>
          )}
        </span>
      ),
    ],
  ];
}

/** Shows when a key expires, in the zone that was chosen for it, and in the machine's own if that differs. */
function Expiry({ apiKey: { expiresAt, expiryTimeZone } }: { apiKey: ApiKeyView }) {
  if (expiresAt === null) return <>No expiration</>;
  const end = toExpiry(expiresAt, expiryTimeZone);
  const here = end.setZone(ownZone.value);
  return (
    <>
      {formatInstant(end)}
      {here.zoneName !== end.zoneName && <span class="caption">{formatInstant(here)} (your time)</span>}
    </>
  );
}

/** Shows the keys with the same name together: once only the newest is in use, the others can be revoked. */
function KeysWithSameName({ keys }: { keys: readonly ApiKeyView[] }) {
  const byAge = keys.toSorted((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt));
  return (
    <section>
      <h3>Keys with this name</h3>
      <ShortTable
        head={[['Key'], ['Created'], ['Last used']]}
        rows={byAge.map(({ id, createdAt, lastUsedAt }, index) => [
          <Fragment key={id}>
            {id === keys[0]?.id ? (
              'This key'
            ) : (
              <a href={formatAddress('api-keys', { open: id })}>{index === byAge.length - 1 ? 'The newest' : 'An older one'}</a>
            )}
            <span class="caption">{shortId(id)}</span>
          </Fragment>,
          <Moment key="created" at={createdAt} />,
          lastUsedAt === null ? 'Never' : <Moment at={lastUsedAt} />,
        ])}
      />
      <p class="hint">Revoke the old key once it’s no longer in use, or immediately if it has leaked.</p>
    </section>
  );
}

function Usage({ view: { usage } }: { view: ApiKeyDetailsView }) {
  const chart = stack(usage.map(({ day, placed }) => ({ day, counts: [placed] })));
  const cancelled = sum(usage.map((day) => day.cancelled));
  const refused = sum(usage.map((day) => day.refused ?? 0));
  const { total, highest } = chart;
  const refusals = refused > 0 && (
    <p class="hint">In the last 30 days, {counted(refused, 'request was', 'requests were')} refused because of the client’s address.</p>
  );
  if (!highest)
    return (
      <>
        <p class="faint">No calls placed in the last 30 days.</p>
        {refusals}
      </>
    );
  const text = `${counted(total, 'call')} placed in the last 30 days; busiest day: ${formatIsoDay(highest.day)} (${formatCount(highest.total)})`;
  return (
    <section>
      <div class="row between label-row">
        <h3>Calls placed in the last 30 days</h3>
        <span class="faint">{formatCount(total)}</span>
      </div>
      <DayChart chart={chart} colors={['day']} what="placed" height={72} text={text} />
      {cancelled > 0 && <p class="hint">{counted(cancelled, 'call')} cancelled with this key.</p>}
      {refusals}
    </section>
  );
}

type LimitApiKeyProps = { view: ApiKeyDetailsView; onChanged: (apiKey: ApiKeyView) => void; onClose: () => void };

function LimitApiKey({ view, onChanged, onClose }: LimitApiKeyProps) {
  // Keeps the key as it was when the dialog opened, because the changes are based on that version.
  const [apiKey] = useState(view.apiKey);
  const [draft, setDraft] = useState(() => toDraft(apiKey));
  return (
    <FormDialog
      title="Limit API key"
      lead={
        <>
          Limits reduce the harm that a leaked key can do. Changes to <strong>{apiKey.name}</strong> take effect at its next request.
        </>
      }
      problems={{ addresses: addressesProblem(draft.addresses), callsPerDay: callsPerDayProblem(draft.callsPerDay) }}
      clearsErrors
      act={async (): Promise<Result<{ apiKey: ApiKeyView } | null>> => {
        const change = changedLimits(apiKey, draft);
        return change === null ? { ok: true, value: null } : window.callkey.request('changeApiKey', { id: apiKey.id, ...change });
      }}
      lookUp={() =>
        lookUpChange<{ apiKey: ApiKeyView } | null>(
          window.callkey.request('showApiKey', { id: apiKey.id, timeZone: ownZone.peek() }),
          (shown) => shown !== null && changedLimits(shown.apiKey, draft) === null,
        )
      }
      onDone={(changed) => (changed ? onChanged(changed.apiKey) : onClose())}
      verb="Save"
      verbing="Saving…"
      onClose={onClose}
    >
      <Field
        name="addresses"
        label="Addresses"
        hint={
          <>
            The key will be accepted only from these IP addresses and networks, one per line, such as 192.0.2.7 or 10.0.0.0/8. Leave it
            empty to allow any address. {view.lastUsedAddress !== null && <>Last used from {view.lastUsedAddress}.</>}
          </>
        }
        warning={lockOutWarning(draft.addresses, view)}
      >
        {(binding) => (
          <textarea
            {...binding}
            rows={4}
            spellcheck={false}
            autocomplete="off"
            data-autofocus
            value={draft.addresses}
            onInput={({ currentTarget }) => setDraft({ ...draft, addresses: currentTarget.value })}
          />
        )}
      </Field>
      <TextField
        name="callsPerDay"
        label="Calls per day"
        hint={
          view.today
            ? `Each day starts at midnight in ${view.today.timeZone}. Calls placed ${view.today.countedFrom === undefined ? 'today' : 'since the limit was set today'}: ${view.today.placed}.`
            : 'Leave it empty for no limit. Calls over the limit are refused until the next midnight in the key’s time zone.'
        }
        inputMode="numeric"
        value={draft.callsPerDay}
        onInput={(callsPerDay) => setDraft({ ...draft, callsPerDay })}
      />
    </FormDialog>
  );
}
