import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { linkTo } from '../state/addresses.ts';
import { formatAge } from '../state/format.ts';
import { formatMembership, userTypeLabels } from '../state/labels.ts';
import type { List } from '../state/list.ts';
import { refreshKey, session } from '../state/session.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';
import { Loadable, type LoadableProps, Stale } from './list.tsx';
import { StopBanners } from './stops.tsx';

type PageProps<View> = {
  title: string;
  /** To the right of the title. */
  actions?: ComponentChildren;
  /** Between the title and the list, such as search and filters. Stays visible while the list scrolls. */
  head?: ComponentChildren;
  /** A panel about one row, next to the list. Rows don't move when it opens. */
  details?: ComponentChildren;
  /** The list's data. The footer says how old it is. */
  list?: List<View>;
  /** Always visible below the list, once the list is loaded; false if there's nothing to show. */
  foot?: ComponentChildren;
  children: ComponentChildren;
};

/** Shows a screen where only the list scrolls, so that rows don't move when something around the list changes. */
export function Page<View>({ title, actions, head, details, list, foot, children }: PageProps<View>) {
  const loaded = list?.state.value;
  const isLoaded = loaded?.view !== null;
  return (
    <div class="page">
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        {window.callkey.capabilities.choosesServer && (
          <CopyButton text={() => linkTo(location.hash)} noun="link to this view" icon="link" />
        )}
        {actions}
      </div>
      <NewLinkNotice />
      <StopBanners />
      {head}
      <div class="body">
        <div class="list" aria-busy={list?.isOld}>
          {children}
        </div>
        {details}
      </div>
      {isLoaded && (foot || loaded?.failure) && (
        <div class="page-foot">
          {list && <Freshness list={list} />}
          {foot}
        </div>
      )}
    </div>
  );
}

type ListPageProps<View> = Omit<PageProps<View>, 'children'> &
  Pick<LoadableProps<View>, 'noun' | 'reset' | 'children'> & { list: List<View> };

export function ListPage<View>({ noun, reset = null, children, ...page }: ListPageProps<View>) {
  return (
    <Page {...page}>
      <Loadable list={page.list} noun={noun} reset={reset} isInPage>
        {children}
      </Loadable>
    </Page>
  );
}

const ageStepMs = 5_000;

function Freshness<View>({ list }: { list: List<View> }) {
  const { loadedAt, isLoading, failure } = list.state.value;
  const [, redraw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) redraw((count) => count + 1);
    }, ageStepMs);
    return () => clearInterval(timer);
  }, []);
  if (failure) return <Stale list={list} />;
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
        onClick={() => {
          refreshKey.value += 1;
        }}
      >
        <Icon name="refresh" />
      </button>
    </span>
  );
}

/** The ID of the viewer who has closed the notice. */
const closedBy = signal<string | null>(null);

/** Tells someone who has just been linked which account they're in. Only their email address was recognized, which may be wrong. */
function NewLinkNotice() {
  const { viewer, signedInWith, justLinked } = session.value ?? {};
  if (!viewer || !justLinked || closedBy.value === viewer.id) return null;
  const facts = [userTypeLabels[viewer.userType], formatMembership(viewer)].filter((text) => text !== '');
  return (
    <div class="box banner" role="status">
      <p>
        You’ve signed in with {signedInWith} for the first time. You’re now <bdi>{viewer.name}</bdi> (<bdi>{viewer.email}</bdi>,{' '}
        <bdi>{facts.join(', ')}</bdi>). If this isn’t your account, sign out and tell your administrator.
      </p>
      <button
        type="button"
        onClick={() => {
          closedBy.value = viewer.id;
        }}
      >
        This is me
      </button>
    </div>
  );
}
