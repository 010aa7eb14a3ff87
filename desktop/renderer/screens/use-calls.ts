import { useEffect, useState } from 'preact/hooks';
import type { CallsView, CallView } from '#contract/console.ts';
import type { CallState } from '#contract/states.ts';
import type { Result } from '../../ipc.ts';
import { useResource } from '../components/loadable.tsx';
import type { Resource } from '../state/resource.ts';

const pollMs = 2_000;

type Wanted = { campaignId: string; state: CallState | null; search: string };

/** The newest calls that match, up to date while they are visible. */
export function useCalls(wanted: Wanted, pages: number): Resource<CallsView> {
  const resource = useResource(() => loadPages(wanted, pages), JSON.stringify([wanted, pages]));
  usePolling(resource, pages);
  return resource;
}

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

export function useDebounced(value: string, ms: number): string {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
