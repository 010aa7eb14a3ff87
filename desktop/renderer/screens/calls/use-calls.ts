import { useEffect, useRef } from 'preact/hooks';
import type { CallsView, CallView } from '#contract/console.ts';
import type { RequestInput, Result } from '../../../ipc.ts';
import { useResource } from '../../components/loadable.tsx';
import type { Resource } from '../../state/loading/resource.ts';

const pollMs = 2_000;
const narrowMs = 10_000;
const idleMs = 15_000;

type CallsQuery = Omit<RequestInput<'listCalls'>, 'cursor'>;

/** Loads the newest matching calls, and keeps them up to date while they're visible. */
export function useCalls(query: CallsQuery, pages: number): Resource<CallsView> {
  const key = JSON.stringify([query, pages]);
  const newest = useRef(key);
  newest.current = key;
  const resource = useResource(() => loadPages(query, pages, () => newest.current === key), key);
  const isNarrow = query.state !== null || query.apiKey !== '' || query.search !== '';
  usePolling(resource, (isNarrow ? narrowMs : pollMs) * pages);
  return resource;
}

/** Loads the newest pages one after the other as a single list, until it's no longer needed. */
async function loadPages(query: CallsQuery, pages: number, isCurrent: () => boolean): Promise<Result<CallsView>> {
  const calls: CallView[] = [];
  let cursor: string | null = null;
  let searchedBackTo: string | undefined;
  let totals: Pick<CallsView, 'total' | 'totalIsMore'> = {};
  for (let page = 0; page < pages; page++) {
    const result: Result<CallsView> = await window.callkey.request('listCalls', { ...query, cursor });
    if (!result.ok) return result;
    calls.push(...result.value.calls);
    const { total, totalIsMore } = result.value;
    totals = { total, totalIsMore };
    cursor = result.value.nextCursor;
    searchedBackTo = result.value.searchedBackTo;
    if (cursor === null || !isCurrent()) break;
  }
  return { ok: true, value: { calls, nextCursor: cursor, ...totals, ...(searchedBackTo !== undefined && { searchedBackTo }) } };
}

/**
 * Reloads a visible list every two seconds, and a longer one less often, because each page is a request and a search reads many calls.
 * While nothing changes, it doubles the wait each time, up to 15 seconds.
 */
function usePolling(resource: Resource<CallsView>, everyMs: number): void {
  useEffect(() => {
    let isShown = true;
    let waitMs = everyMs;
    let last = '';
    let timer = setTimeout(poll, waitMs);
    async function poll(): Promise<void> {
      if (!document.hidden) await resource.refreshIfOlder(0);
      const calls = JSON.stringify(resource.state.peek().value?.calls);
      waitMs = calls === last ? Math.max(everyMs, Math.min(2 * waitMs, idleMs)) : everyMs;
      last = calls;
      if (isShown) timer = setTimeout(poll, waitMs);
    }
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [resource, everyMs]);
}
