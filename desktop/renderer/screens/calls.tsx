import { useEffect, useState } from 'preact/hooks';
import { type CallState, callStates } from '#contract/calls.ts';
import type { CallsView, CallView, CampaignsView } from '#contract/console.ts';
import type { Result } from '../../ipc.ts';
import { Empty, Loadable, useResource } from '../components/loadable.tsx';
import { pluralize } from '../state/format.ts';
import { callStateLabels, outcomeLabels } from '../state/labels.ts';
import type { ScreenProps } from '../state/navigation.ts';
import type { Resource } from '../state/resource.ts';
import { CallTable } from './call-table.tsx';

const pollMs = 2_000;
const typingMs = 250;

/** The calls of a campaign. No other screen or endpoint tells a call's outcome. */
export function Calls({ title }: ScreenProps) {
  const campaigns = useResource(() => window.callkey.listCampaigns());
  const [chosen, choose] = useState('');
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <Loadable resource={campaigns} what="your campaigns">
        {(view) => {
          const [first] = view.campaigns;
          if (!first) {
            return (
              <Empty title="No campaigns">
                <p>Every call belongs to a campaign, and you have access to none yet. Ask your operator to create one.</p>
              </Empty>
            );
          }
          const campaignId = view.campaigns.some(({ id }) => id === chosen) ? chosen : first.id;
          return <CampaignCalls key={campaignId} campaignId={campaignId} campaigns={view} onChoose={choose} />;
        }}
      </Loadable>
    </>
  );
}

type CampaignCallsProps = { campaignId: string; campaigns: CampaignsView; onChoose: (id: string) => void };

function CampaignCalls({ campaignId, campaigns, onChoose }: CampaignCallsProps) {
  const [state, setState] = useState<CallState | null>(null);
  const [typed, setTyped] = useState('');
  const search = useDebounced(typed.trim(), typingMs);
  const [pages, setPages] = useState(1);
  const key = JSON.stringify([campaignId, state, search, pages]);
  const resource = useResource(() => loadPages({ campaignId, state, search }, pages), key);
  usePolling(resource, pages);

  return (
    <>
      <search class="toolbar">
        <label>
          <span class="label">Campaign</span>
          <select value={campaignId} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
            {byAccount(campaigns).map(([account, items]) => (
              <optgroup key={account} label={account}>
                {items.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        </label>
        <label>
          <span class="label">State</span>
          <select
            value={state ?? ''}
            onChange={({ currentTarget }) => {
              setState(callStates.find((name) => name === currentTarget.value) ?? null);
              setPages(1);
            }}
          >
            <option value="">Any</option>
            {callStates.map((name) => (
              <option key={name} value={name}>
                {outcomeLabels[name] ?? callStateLabels[name]}
              </option>
            ))}
          </select>
        </label>
        <label class="grow">
          <span class="label">Search</span>
          <input
            type="search"
            placeholder="Contact, phone number or request id"
            value={typed}
            onInput={({ currentTarget }) => {
              setTyped(currentTarget.value);
              setPages(1);
            }}
          />
        </label>
      </search>
      <Loadable resource={resource} what="calls">
        {(view) =>
          view.calls.length === 0 ? (
            <NoCalls isFiltered={state !== null || search !== ''} />
          ) : (
            <>
              <CallTable calls={view.calls} />
              <div class="pager">
                <p role="status">{pluralize(view.calls.length, 'call')}, newest first · followed live</p>
                {view.nextCursor !== null && (
                  <button type="button" onClick={() => setPages(pages + 1)}>
                    Show older calls
                  </button>
                )}
              </div>
            </>
          )
        }
      </Loadable>
    </>
  );
}

function NoCalls({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No call matches" />;
  return (
    <Empty title="No calls yet">
      <p>When one of your systems places a call with an API key, it shows here.</p>
    </Empty>
  );
}

type Wanted = { campaignId: string; state: CallState | null; search: string };

/** Loads the newest pages one after the other, as one list. */
async function loadPages(wanted: Wanted, pages: number): Promise<Result<CallsView>> {
  const calls: CallView[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < pages; page++) {
    const result: Result<CallsView> = await window.callkey.listCalls({ ...wanted, cursor });
    if (!result.ok) return result;
    calls.push(...result.value.calls);
    cursor = result.value.nextCursor;
    if (cursor === null) break;
  }
  return { ok: true, value: { calls, nextCursor: cursor } };
}

/** Reloads a visible list every two seconds, and a longer one less often: its every page is a request. */
function usePolling(resource: Resource<CallsView>, pages: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      const { isLoading, failure } = resource.state.peek();
      if (!document.hidden && !isLoading && !failure) void resource.refresh();
    }, pollMs * pages);
    return () => clearInterval(timer);
  }, [resource, pages]);
}

function useDebounced(value: string, ms: number): string {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

function byAccount({ campaigns }: CampaignsView): [string, CampaignsView['campaigns']][] {
  const groups = Map.groupBy(campaigns, ({ account }) => account.name);
  return [...groups];
}
