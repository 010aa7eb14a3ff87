import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAge } from '../state/format/format-time.ts';
import type { Resource } from '../state/resource.ts';
import { Icon } from './icons.tsx';
import { Stale } from './loadable.tsx';

type PageProps<Value> = {
  title: string;
  /** At the right of the title. */
  actions?: ComponentChildren;
  /** Between title and list, such as search and filters. It stays in sight while the list scrolls. */
  head?: ComponentChildren;
  /** A panel about one row, beside the list. It moves no row. */
  details?: ComponentChildren;
  /** What the list shows: the foot says how old that is. */
  resource?: Resource<Value>;
  /** Under the list, always in sight; false while there is nothing to say. */
  foot?: ComponentChildren;
  children: ComponentChildren;
};

/** A screen: only the list scrolls, so that nothing above, below or beside it moves a row. */
export function Page<Value>({ title, actions, head, details, resource, foot, children }: PageProps<Value>) {
  const loaded = resource?.state.value;
  const isStale = loaded !== undefined && loaded.value !== null && loaded.failure !== null;
  return (
    <div class="page">
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        {actions}
      </div>
      {head}
      <div class="body">
        <div class="list">{children}</div>
        {details}
      </div>
      {(foot || isStale) && (
        <div class="page-foot">
          {resource && <Freshness resource={resource} />}
          {foot}
        </div>
      )}
    </div>
  );
}

const ageStepMs = 5_000;

/** How old a list is, or why it could not be loaded again, and a button that loads it again. */
function Freshness<Value>({ resource }: { resource: Resource<Value> }) {
  const { loadedAt, isLoading, failure } = resource.state.value;
  const [, redraw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) redraw((count) => count + 1);
    }, ageStepMs);
    return () => clearInterval(timer);
  }, []);
  if (failure) return <Stale resource={resource} />;
  if (loadedAt === 0) return null;
  return (
    <span class="fresh">
      Updated {formatAge(Date.now() - loadedAt)}
      <button
        type="button"
        class="quiet icon-only"
        aria-label="Refresh"
        data-tip="Refresh"
        aria-disabled={isLoading}
        onClick={() => void resource.refresh()}
      >
        <Icon name="refresh" />
      </button>
    </span>
  );
}
