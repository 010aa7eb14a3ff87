import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAge } from '../state/format/format-time.ts';
import type { Resource } from '../state/resource.ts';
import { Icon } from './icons.tsx';

type PageProps = {
  title: string;
  /** At the right of the title. */
  actions?: ComponentChildren;
  /** Under the content, always in sight. */
  foot?: ComponentChildren;
  children: ComponentChildren;
};

/** The column of a screen. */
export function Page({ title, actions, foot, children }: PageProps) {
  return (
    <div class="page">
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        {actions}
      </div>
      {children}
      {foot && <div class="page-foot">{foot}</div>}
    </div>
  );
}

const ageStepMs = 5_000;

/** How old a list is, and a button that loads it again. */
export function Freshness<Value>({ resource }: { resource: Resource<Value> }) {
  const { loadedAt, isLoading } = resource.state.value;
  const [, redraw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) redraw((count) => count + 1);
    }, ageStepMs);
    return () => clearInterval(timer);
  }, []);
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
