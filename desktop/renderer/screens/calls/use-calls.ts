import { useEffect, useRef } from 'preact/hooks';
import type { CallsView, CallView } from '#contract/console/calls.ts';
import type { RequestInput, Result } from '../../../ipc.ts';
import { useResource } from '../../components/loadable.tsx';
import type { Resource } from '../../state/loading/resource.ts';
import { remember } from '../../state/loading/view.ts';
import { tenancyKey } from '../../state/session.ts';

const pollMs = 2_000;
const filteredMs = 10_000;
const idleMs = 15_000;

type CachedCalls = { key: string; view: CallsView | null };
type CallsFilter = Omit<RequestInput<'listAllCalls'>, 'cursor'>;

/** Loads the newest matching calls of a campaign, or of all, and keeps them up to date while they're visible. */
export function useCalls(campaignId: string | null, filter: CallsFilter, pages: number): Resource<CallsView> {
  const key = JSON.stringify([campaignId, filter, pages]);
  const newest = useRef(key);
  newest.current = key;
  // When the user returns to the screen, it shows the last list, even if the core is unreachable.
  const cached = remember(`${tenancyKey.value}/calls`, (): CachedCalls => ({ key: '', view: null }));
  const load = () => loadPages(campaignId, filter, pages, () => newest.current === key);
  const resource = useResource(load, key, cached.key === key ? cached.view : null);
  const { value, isLoading } = resource.state.value;
  if (value && !isLoading) Object.assign(cached, { key, view: value });
  const isFiltered = filter.state !== null || filter.apiKey !== '' || filter.search !== '';
  usePolling(resource, (isFiltered ? filteredMs : pollMs) * pages);
  return resource;
}

/** Loads the newest pages one after the other and joins them, but stops if the list is no longer needed. */
async function loadPages(
  campaignId: string | null,
  filter: CallsFilter,
  pages: number,
  isCurrent: () => boolean,
): Promise<Result<CallsView>> {
  const calls: CallView[] = [];
  let cursor: string | null = null;
  for (let page = 1; ; page++) {
    const query: RequestInput<'listAllCalls'> = { ...filter, cursor };
    const result: Result<CallsView> =
      campaignId === null
        ? await window.callkey.request('listAllCalls', query)
        : await window.callkey.request('listCalls', { id: campaignId, ...query });
    if (!result.ok) return result;
    calls.push(...result.value.calls);
    cursor = result.value.nextCursor;
    if (cursor === null || page >= pages || !isCurrent()) return { ok: true, value: { ...result.value, calls } };
  }
}

/**
 * Reloads a visible list every two seconds. Longer or filtered lists reload less often, because each page is a request, and a filter reads
 * many calls. While nothing changes, the wait doubles each time, up to 15 seconds. It starts over when the user returns to the window,
 * because they may have just placed a call.
 */
function usePolling(resource: Resource<CallsView>, intervalMs: number): void {
  useEffect(() => {
    let isShown = true;
    let isPolling = false;
    let waitMs = intervalMs;
    let last = '';
    const pollSoon = () => setTimeout(() => void poll(() => resource.refreshIfOlder(0)), waitMs);
    let timer = pollSoon();
    async function poll(load: () => Promise<void>): Promise<void> {
      isPolling = true;
      if (!document.hidden) await load();
      isPolling = false;
      const calls = JSON.stringify(resource.state.peek().value?.calls);
      waitMs = calls === last ? Math.max(intervalMs, Math.min(2 * waitMs, idleMs)) : intervalMs;
      last = calls;
      if (isShown) timer = pollSoon();
    }
    function onReturn(): void {
      waitMs = intervalMs;
      if (isPolling) return;
      clearTimeout(timer);
      void poll(() => resource.refresh());
    }
    window.addEventListener('focus', onReturn);
    return () => {
      isShown = false;
      clearTimeout(timer);
      window.removeEventListener('focus', onReturn);
    };
  }, [resource, intervalMs]);
}
