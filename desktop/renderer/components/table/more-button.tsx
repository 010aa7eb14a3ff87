import { useState } from 'preact/hooks';
import { describeFailure } from '../../state/format/failure-text.ts';
import { loadNext, type Paged, type Pages } from '../../state/loading/pages.ts';
import type { Resource } from '../../state/loading/resource.ts';

type MoreButtonProps<View extends Paged> = { resource: Resource<View>; pages: Pages<View>; label: string };

/** Loads the next page of a list, if there is one. */
export function MoreButton<View extends Paged>({ resource, pages, label }: MoreButtonProps<View>) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  if ((resource.state.value.value?.nextCursor ?? null) === null) return null;
  async function load(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    const result = await loadNext(pages, resource);
    setBusy(false);
    setProblem(result === null || result.ok ? null : describeFailure(result.failure));
  }
  return (
    <span class="end">
      <span role="status">{problem}</span>
      <button type="button" aria-disabled={isBusy} onClick={() => void load()}>
        {label}
      </button>
    </span>
  );
}
