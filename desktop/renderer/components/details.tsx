import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { type ActivityEvent, addressLabel, describeEvent } from '../state/activity.ts';
import { formatAddress, linkTo } from '../state/addresses.ts';
import { whisper } from '../state/announcement.ts';
import { describeFailure, isNotFound } from '../state/failure-text.ts';
import { formatDates } from '../state/format.ts';
import { capitalized } from '../state/labels.ts';
import { session } from '../state/session.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';
import { useList } from './list.tsx';
import { focusRow } from './table.tsx';
import { Moment } from './time.tsx';

type DetailsProps = {
  title: string;
  /** The ID of the row, to which the focus returns. */
  rowId: string;
  badge?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
};

/** Shows a panel about the open row, next to the list, or over it if there isn't enough room. Escape closes it. */
export function Details({ title, rowId, badge, onClose, children }: DetailsProps) {
  const close = () => {
    onClose();
    focusRow(rowId);
  };
  useEffect(() => {
    whisper.value = `Details for ${title} opened`;
    return () => {
      whisper.value = 'Details closed';
    };
  }, [title]);
  // A layout effect, because if Escape is pressed right after an arrow key, the focus must return to the row that the panel now shows.
  useLayoutEffect(() => {
    const closeOnEscape = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) close();
    };
    document.addEventListener('keydown', closeOnEscape);
    return () => document.removeEventListener('keydown', closeOnEscape);
  });
  return (
    <aside class="details" aria-label={`Details for ${title}`}>
      <div>
        <div class="title-row">
          <h2>
            <bdi>{title}</bdi>
          </h2>
          <CopyButton text={() => linkTo(location.hash)} noun="link" icon="link" />
          <button type="button" class="quiet icon-only" aria-label="Close details" data-tip="Close (Esc)" onClick={close}>
            <Icon name="close" />
          </button>
        </div>
        {badge}
      </div>
      {children}
    </aside>
  );
}

type NoDetailsProps = Omit<DetailsProps, 'children'> & {
  failure: Failure;
  /** What to say if it doesn't exist. */
  gone: string;
  /** Shows what has happened to it, if it existed. */
  hasHistory?: boolean;
};

/** Says why the row that an address names can't be shown. */
export function NoDetails({ failure, gone, hasHistory = false, ...details }: NoDetailsProps) {
  const { rowId: subject } = details;
  const load = () => window.callkey.request('listActivity', { subject, cursor: null });
  const isGone = isNotFound(failure);
  const list = useList({ key: `history/${subject}`, every: null, load: isGone && hasHistory ? load : null });
  const events = list.state.value.view?.events ?? [];
  return (
    <Details {...details} title={events[0]?.subject.name ?? details.title}>
      <p>{!isGone ? describeFailure(failure) : events[0]?.action === 'user.deleted' ? 'This user was deleted.' : gone}</p>
      <Events events={events} about={subject} />
    </Details>
  );
}

export function Events({ events, about }: { events: readonly ActivityEvent[]; about: string }) {
  if (events.length === 0) return null;
  return (
    <section>
      <h3>Activity</h3>
      <ul class="events stack">
        {events.map((event) => (
          <li key={event.id}>
            <Moment at={event.at} />
            <span>
              <EventLink event={event}>
                <bdi>{describeEvent(event, session.value?.viewer.id ?? '', about)}</bdi>
              </EventLink>
              {event.action === 'api-key.refused' && ` (${addressLabel(event.address)})`}
              {event.detail !== undefined && <span class="caption">{capitalized(formatDates(event.detail))}</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Leads to the event on Activity, except for a refused request: it has no actor, so account users don't see it there. */
function EventLink({ event: { id, action }, children }: { event: ActivityEvent; children: ComponentChildren }) {
  return action === 'api-key.refused' ? children : <a href={formatAddress('activity', { open: id })}>{children}</a>;
}

export function Copyable({ text, noun }: { text: string; noun: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} noun={noun} />
    </span>
  );
}

/** A term with its value, and without one if it's null or false. */
export type Fact = readonly [term: string, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly Fact[] }) {
  const shown = facts.filter(hasValue);
  if (shown.length === 0) return null;
  return (
    <dl class="facts">
      {shown.map(([term, value]) => (
        // With its key, a value keeps its focused button when facts before it arrive.
        <Fragment key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

function hasValue([, value]: Fact): boolean {
  return value !== null && value !== false;
}

export function FactSection({ title, facts }: { title: string; facts: readonly Fact[] }) {
  if (!facts.some(hasValue)) return null;
  return (
    <section>
      <h3>{title}</h3>
      <Facts facts={facts} />
    </section>
  );
}
