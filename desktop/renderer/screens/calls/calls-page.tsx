import type { ComponentChildren } from 'preact';
import { useCallback } from 'preact/hooks';
import type { CallsView, CallView } from '#contract/console/calls.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { Empty, Loadable, type Reset } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { ExportAllButton } from '../../components/table/export-all-button.tsx';
import { focusRow } from '../../components/table/table-focus.ts';
import { Time } from '../../components/time.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { listDays } from '../../state/clock.ts';
import { describeLoaded } from '../../state/format/format.ts';
import type { Resource } from '../../state/loading/resource.ts';
import { CallDetails } from './call-details.tsx';
import { CallFilters } from './call-filters.tsx';
import { CallTable } from './call-table.tsx';
import { type CallsSettings, callsView, getOpenCall } from './calls-view.ts';
import { useCalls } from './use-calls.ts';

type CallsPageProps = {
  title: string;
  /** The ID of a campaign; null for all. */
  campaignId: string | null;
  settings: CallsSettings;
  onChange: (changes: Partial<CallsSettings>) => void;
  /** Lets the user choose a campaign. */
  actions: ComponentChildren;
  /** The chart above the list. */
  chart: ComponentChildren;
};

/** Shows the calls of a campaign, or of all campaigns in scope, filtered by the core. */
export function CallsPage({ title, campaignId, settings, onChange, actions, chart }: CallsPageProps) {
  const { state, apiKey, from, to, pages } = settings;
  const search = useDebounced(settings.search.trim(), typingMs);
  const filter = { state, apiKey, search, ...listDays(from, to) };
  const resource = useCalls(campaignId, filter, pages);
  const isFiltered = state !== null || search !== '' || apiKey !== '' || from !== '' || to !== '';
  const view = resource.state.value.value;
  const calls = view?.calls ?? [];
  const searchedBackTo = view?.searchedBackTo;
  const hasNone = view !== null && calls.length === 0 && searchedBackTo === undefined && !isFiltered;
  const showAll = () => onChange({ ...callsView.initial, campaign: campaignId ?? '' });
  const reset = isFiltered ? { label: 'Show all calls', onReset: showAll } : null;
  const open = getOpenCall(settings);
  const closeDetails = useCallback(() => {
    onChange({ open: '', call: '' });
    focusRow(open?.contactId ?? null);
  }, [open?.contactId]);
  // Closes the details, because the open call might not match the new filters.
  const narrow = (changes: Partial<CallsSettings>) => onChange({ open: '', call: '', pages: 1, ...changes });
  const show = ({ campaign, contactId }: CallView) =>
    onChange(campaignId === null ? { call: `${campaign?.id}/${contactId}` } : { campaign: campaignId, open: contactId });
  return (
    <Page
      title={title}
      actions={
        <>
          {actions}
          {calls.length > 0 && (
            <ExportAllButton
              request={
                campaignId === null
                  ? { name: 'exportAllCalls', input: filter, file: 'calls.csv' }
                  : { name: 'exportCalls', input: { id: campaignId, ...filter }, file: 'calls.csv' }
              }
              noun="call"
            />
          )}
        </>
      }
      head={
        <>
          {chart}
          {!hasNone && <CallFilters calls={calls} settings={settings} onChange={narrow} />}
        </>
      }
      details={
        open && (
          <CallDetails
            key={open.contactId}
            {...open}
            listed={calls.find(({ contactId }) => contactId === open.contactId)}
            onClose={closeDetails}
          />
        )
      }
      resource={resource}
      foot={(calls.length > 0 || searchedBackTo) && <CallsFoot resource={resource} onOlder={() => onChange({ pages: pages + 1 })} />}
    >
      <Loadable resource={resource} noun="calls" isInPage reset={reset}>
        {() =>
          calls.length === 0 ? (
            <NoCalls searchedBackTo={searchedBackTo} reset={reset} />
          ) : (
            <CallTable calls={calls} openId={open?.contactId ?? ''} campaignId={campaignId} onOpen={show} />
          )
        }
      </Loadable>
    </Page>
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

/** @property reset null if nothing is filtered */
type NoCallsProps = { searchedBackTo: string | undefined; reset: Reset | null };

function NoCalls({ searchedBackTo, reset }: NoCallsProps) {
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
  if (reset) {
    return (
      <Empty title="No matching calls">
        <button type="button" onClick={reset.onReset}>
          {reset.label}
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
