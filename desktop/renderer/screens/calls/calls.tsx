import type { ComponentChildren } from 'preact';
import { screensFor } from '../../../screens.ts';
import { OutcomeChart } from '../../components/charts/outcome-chart.tsx';
import { summaryMs } from '../../components/charts/outcomes.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { Empty, Loadable, useFreshResource, useResource } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { useView } from '../../components/use-view.ts';
import { formatAddress } from '../../state/address/addresses.ts';
import { firstChartDay, ownZone } from '../../state/clock.ts';
import { type ScreenProps, scrollToTop } from '../../state/navigation.ts';
import { CallsPage } from './calls-page.tsx';
import { type CallsSettings, callsView, chartFilter } from './calls-view.ts';
import { AllCalls } from './campaign-outcomes.tsx';
import { type Campaign, CampaignSelect, firstPage, focusCampaignSelect } from './campaign-select.tsx';
import { DialerOff, DialerTrouble } from './dialer-notices.tsx';

/** Shows the calls of a campaign, or of all campaigns. No other screen or endpoint shows a call's outcome. */
export function Calls({ session, title }: ScreenProps) {
  const campaigns = useFreshResource('campaigns', () => window.callkey.request('listCampaigns', firstPage), summaryMs);
  const [settings, change] = useView(callsView.name, callsView.initial);
  const view = campaigns.state.value.value;
  const [first] = view?.campaigns ?? [];
  const canCreate = screensFor(session.viewer).some(({ name }) => name === 'directory');
  const choose = (campaignId: string) => {
    change({ campaign: campaignId, open: '', call: '', search: '', pages: 1 });
    scrollToTop();
    focusCampaignSelect();
  };
  if (!view || !first) {
    return (
      <Page title={title}>
        <Loadable resource={campaigns} noun="your campaigns">
          {() => (
            <Empty title="No campaigns">
              <p>
                Calls belong to campaigns, and you don’t have access to any campaigns yet.{' '}
                {canCreate ? (
                  <a href={formatAddress('directory', { kind: 'campaign' })}>Create one in the directory.</a>
                ) : (
                  'Ask your operator to create one.'
                )}
              </p>
            </Empty>
          )}
        </Loadable>
      </Page>
    );
  }
  const campaignId = settings.campaign;
  const isOnlyOne = view.campaigns.length === 1 && view.nextCursor === null;
  const chosen = isOnlyOne && campaignId === '' ? first : view.campaigns.find(({ id }) => id === campaignId);
  const show = (campaign: Campaign) => (
    <CallsPage
      key={campaign.id}
      title={title}
      campaignId={campaign.id}
      settings={settings}
      onChange={change}
      actions={<CampaignSelect campaigns={view} chosen={campaign} onChange={choose} />}
      chart={<CampaignChart campaignId={campaign.id} settings={settings} onChange={change} />}
    />
  );
  if (chosen) return show(chosen);
  if (campaignId === '') return <AllCalls title={title} campaigns={view} settings={settings} onChange={change} onChoose={choose} />;
  return <CampaignById key={campaignId} title={title} id={campaignId} show={show} onShowAll={() => change(callsView.initial)} />;
}

type CampaignByIdProps = { title: string; id: string; show: (campaign: Campaign) => ComponentChildren; onShowAll: () => void };

/** Finds a campaign that was opened through its address or a search, and isn't on the loaded page. */
function CampaignById({ title, id, show, onShowAll }: CampaignByIdProps) {
  const resource = useResource(() => window.callkey.request('listCampaigns', { search: id, cursor: null }));
  const campaign = resource.state.value.value?.campaigns.find((each) => each.id === id);
  if (campaign) return show(campaign);
  return (
    <Page title={title}>
      <Loadable resource={resource} noun="the campaign">
        {() => (
          <Empty title="Campaign not found">
            <p>It doesn’t exist, or you don’t have access to it.</p>
            <button type="button" onClick={onShowAll}>
              Show all calls
            </button>
          </Empty>
        )}
      </Loadable>
    </Page>
  );
}

type CampaignChartProps = { campaignId: string; settings: CallsSettings; onChange: (changes: Partial<CallsSettings>) => void };

/** Shows the chart above the list. The list doesn't wait for it. */
function CampaignChart({ campaignId, settings, onChange }: CampaignChartProps) {
  const { from, to } = settings;
  const timeZone = ownZone.value;
  const search = useDebounced(settings.search.trim(), typingMs);
  const filter = chartFilter(settings, search, firstChartDay());
  const load = () => window.callkey.request('summarizeCalls', { id: campaignId, ...filter, timeZone });
  const summary = useFreshResource(`outcomes/${campaignId}/${JSON.stringify([filter, timeZone])}`, load, summaryMs);
  const view = summary.state.value.value;
  return (
    <>
      <DialerOff />
      {view && <DialerTrouble trouble={view.dialerTrouble} />}
      <OutcomeChart
        summary={view}
        day={from === to ? from : ''}
        filter={filter}
        onChoose={(day) => onChange({ from: day, to: day, open: '', call: '', pages: 1 })}
      />
    </>
  );
}
