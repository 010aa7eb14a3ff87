import type { ComponentChildren } from 'preact';
import { useCallback } from 'preact/hooks';
import { callStates } from '#contract/calls/states.ts';
import type { CallsView, CampaignsView } from '#contract/console.ts';
import type { RequestInput } from '../../../ipc.ts';
import { DayRange } from '../../components/charts/day-range.tsx';
import { OutcomeChart } from '../../components/charts/outcome-chart.tsx';
import { summaryMs } from '../../components/charts/outcomes.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { Empty, Loadable, useFreshResource, useResource, useRetries } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { ExportAllButton } from '../../components/table/export-all-button.tsx';
import { focusRow } from '../../components/table/table-focus.ts';
import { Time } from '../../components/time.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { useView } from '../../components/use-view.ts';
import { daysOf, ownZone } from '../../state/clock.ts';
import { describeLoaded } from '../../state/format/format.ts';
import { callStateLabels } from '../../state/format/labels.ts';
import type { Resource } from '../../state/loading/resource.ts';
import { type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { AllCalls } from './all-calls.tsx';
import { CallDetails } from './call-details.tsx';
import { callCsvHead, callCsvRow } from './call-list.ts';
import { CallTable } from './call-table.tsx';
import { type CallsSettings, callsView } from './calls-view.ts';
import { type Campaign, CampaignSelect, firstPage, focusCampaignSelect } from './campaign-select.tsx';
import { DialerOff } from './dialer-off.tsx';
import { DialerTrouble } from './dialer-trouble.tsx';
import { useCalls } from './use-calls.ts';

/** Shows the calls of a campaign, or the outcomes of all campaigns. No other screen or endpoint shows a call's outcome. */
export function Calls({ title }: ScreenProps) {
  const campaigns = useFreshResource('campaigns', () => window.callkey.request('listCampaigns', firstPage), summaryMs);
  const [settings, change] = useView(callsView.name, callsView.initial);
  useRetries(campaigns);
  const view = campaigns.state.value.value;
  const [first] = view?.campaigns ?? [];
  const choose = (campaignId: string, days: Partial<CallsSettings> = {}) => {
    change({ campaign: campaignId, open: '', search: '', pages: 1, ...days });
    scrollToTop();
    focusCampaignSelect();
  };
  // The day that was chosen there was a day of the chart.
  const chooseFromAll = (campaignId: string) => choose(campaignId, { from: '', to: '' });
  if (!view || !first) {
    return (
      <Page title={title}>
        <Loadable resource={campaigns} what="your campaigns">
          {() => (
            <Empty title="No campaigns">
              <p>Calls belong to campaigns, and you don’t have access to any campaigns yet. Ask your operator to create one.</p>
            </Empty>
          )}
        </Loadable>
      </Page>
    );
  }
  const campaignId = settings.campaign;
  const isOnlyOne = view.campaigns.length === 1 && view.nextCursor === null;
  const chosen = isOnlyOne ? first : view.campaigns.find(({ id }) => id === campaignId);
  const show = (campaign: Campaign) => (
    <CampaignCalls
      key={campaign.id}
      title={title}
      campaigns={view}
      campaign={campaign}
      settings={settings}
      onChange={change}
      onChoose={choose}
    />
  );
  if (chosen) return show(chosen);
  const all = <AllCalls title={title} campaigns={view} settings={settings} onChange={change} onChoose={chooseFromAll} />;
  if (campaignId === '' || view.nextCursor === null) return all;
  return <CampaignOfId key={campaignId} title={title} id={campaignId} show={show} otherwise={all} />;
}

type CampaignOfIdProps = { title: string; id: string; show: (campaign: Campaign) => ComponentChildren; otherwise: ComponentChildren };

/** Finds a campaign that isn't on any loaded page, after it was opened by its address or a search. */
function CampaignOfId({ title, id, show, otherwise }: CampaignOfIdProps) {
  const resource = useResource(() => window.callkey.request('listCampaigns', { search: id, cursor: null }));
  const view = resource.state.value.value;
  if (!view) {
    return (
      <Page title={title}>
        <Loadable resource={resource} what="the campaign">
          {() => null}
        </Loadable>
      </Page>
    );
  }
  const campaign = view.campaigns.find((each) => each.id === id);
  return campaign ? show(campaign) : otherwise;
}

type CampaignCallsProps = {
  title: string;
  campaigns: CampaignsView;
  campaign: Campaign;
  settings: CallsSettings;
  onChange: (changes: Partial<CallsSettings>) => void;
  onChoose: (campaignId: string) => void;
};

function CampaignCalls({ title, campaigns, campaign, settings, onChange, onChoose }: CampaignCallsProps) {
  const campaignId = campaign.id;
  const { state, apiKey, from, to, pages } = settings;
  const search = useDebounced(settings.search.trim(), typingMs);
  const query = { id: campaignId, state, apiKey, search, ...daysOf(from, to) };
  const resource = useCalls(query, pages);
  const isFiltered = state !== null || search !== '' || apiKey !== '' || from !== '' || to !== '';
  const openId = settings.open;
  const calls = resource.state.value.value?.calls ?? [];
  const searchedBackTo = resource.state.value.value?.searchedBackTo;
  const openCall = calls.find(({ contactId }) => contactId === openId);
  const closeDetails = useCallback(() => {
    onChange({ open: '' });
    focusRow(openId);
  }, [openId]);

  return (
    <Page
      title={title}
      actions={
        <>
          <CampaignSelect campaigns={campaigns} chosen={campaign} onChange={onChoose} />
          {calls.length > 0 && <ExportAllButton name="calls" head={callCsvHead} load={(cursor) => loadRows({ ...query, cursor })} />}
        </>
      }
      head={
        <>
          <DialerOff />
          <Outcomes campaignId={campaignId} day={from === to ? from : ''} onChoose={(day) => onChange({ from: day, to: day, pages: 1 })} />
          <search class="toolbar">
            <label class="grow">
              <span class="visually-hidden">Search</span>
              <input
                type="search"
                placeholder="Contact, phone number, or request ID"
                value={settings.search}
                onInput={({ currentTarget }) => onChange({ search: currentTarget.value, pages: 1 })}
              />
            </label>
            <label>
              <span class="visually-hidden">State</span>
              <select
                value={state ?? ''}
                onChange={({ currentTarget }) =>
                  onChange({ state: callStates.find((name) => name === currentTarget.value) ?? null, pages: 1 })
                }
              >
                <option value="">Any outcome</option>
                {callStates.map((name) => (
                  <option key={name} value={name}>
                    {callStateLabels[name]}
                  </option>
                ))}
              </select>
            </label>
            <KeyFilter calls={calls} apiKey={apiKey} onChange={(chosen) => onChange({ apiKey: chosen, pages: 1 })} />
            <DayRange from={from} to={to} onChange={(range) => onChange({ ...range, pages: 1 })} />
          </search>
        </>
      }
      details={
        openId !== '' && <CallDetails key={openId} campaignId={campaignId} contactId={openId} listed={openCall} onClose={closeDetails} />
      }
      resource={resource}
      foot={(calls.length > 0 || searchedBackTo) && <CallsFoot resource={resource} onOlder={() => onChange({ pages: pages + 1 })} />}
    >
      <Loadable resource={resource} what="calls" isInPage>
        {(view) =>
          view.calls.length === 0 ? (
            <NoCalls
              searchedBackTo={searchedBackTo}
              onReset={isFiltered ? () => onChange({ ...callsView.initial, campaign: campaignId }) : null}
            />
          ) : (
            <CallTable
              calls={view.calls}
              openId={openId}
              campaignId={campaignId}
              onOpen={({ contactId }) => onChange({ campaign: campaignId, open: contactId })}
            />
          )
        }
      </Loadable>
    </Page>
  );
}

async function loadRows(query: RequestInput<'listCalls'>) {
  const result = await window.callkey.request('listCalls', query);
  return result.ok
    ? { ok: true as const, value: { rows: result.value.calls.map(callCsvRow), nextCursor: result.value.nextCursor } }
    : result;
}

type KeyFilterProps = { calls: CallsView['calls']; apiKey: string; onChange: (apiKey: string) => void };

/** Offers the keys that the viewer can see, and revoked keys that placed some of the calls shown. */
function KeyFilter({ calls, apiKey, onChange }: KeyFilterProps) {
  const keys = useFreshResource('keys-of-calls', () => window.callkey.request('listApiKeys', {}), summaryMs);
  const named = [...(keys.state.value.value?.apiKeys ?? []), ...calls.flatMap((call) => call.apiKey ?? [])];
  const options = new Map(named.map(({ id, name }) => [id, name]));
  return (
    <label>
      <span class="visually-hidden">Key</span>
      <select value={apiKey} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">Any key</option>
        {[...options].map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Shows the chart above the list. The list doesn't wait for it. */
function Outcomes({ campaignId, day, onChoose }: { campaignId: string; day: string; onChoose: (day: string) => void }) {
  const zone = ownZone.value;
  const load = () => window.callkey.request('summarizeCalls', { id: campaignId, timeZone: zone });
  const summary = useFreshResource(`outcomes/${campaignId}/${zone}`, load, summaryMs);
  const view = summary.state.value.value;
  return (
    view && (
      <>
        <DialerTrouble trouble={view.dialerTrouble} />
        <OutcomeChart summary={view} day={day} onChoose={onChoose} />
      </>
    )
  );
}

function CallsFoot({ resource, onOlder }: { resource: Resource<CallsView>; onOlder: () => void }) {
  const view = resource.state.value.value;
  if (!view) return null;
  return (
    <>
      <span role="status">
        {describeLoaded(view.calls.length, view, 'call')}, newest first
        {view.searchedBackTo && <SearchedBackTo at={view.searchedBackTo} />}
      </span>
      {view.nextCursor !== null && (
        <span class="end">
          <button type="button" onClick={onOlder}>
            {view.searchedBackTo ? 'Search older calls' : 'Show older calls'}
          </button>
        </span>
      )}
    </>
  );
}

function SearchedBackTo({ at }: { at: string }) {
  return (
    <>
      , searched back to <Time at={at} />
    </>
  );
}

/** @property onReset null if nothing is filtered */
type NoCallsProps = { searchedBackTo: string | undefined; onReset: (() => void) | null };

function NoCalls({ searchedBackTo, onReset }: NoCallsProps) {
  if (searchedBackTo !== undefined) {
    return (
      <Empty title="No matching calls so far">
        <p>
          Calls placed since <Time at={searchedBackTo} /> were searched. Search older ones, or enter more of the name, phone number or
          request ID.
        </p>
      </Empty>
    );
  }
  if (onReset) {
    return (
      <Empty title="No matching calls">
        <button type="button" onClick={onReset}>
          Show all calls
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No calls yet">
      <p>Calls that your systems place with an API key appear here.</p>
    </Empty>
  );
}
