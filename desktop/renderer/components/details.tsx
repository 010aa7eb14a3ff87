import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { linkTo } from '../state/addresses.ts';
import { whisper } from '../state/announcement.ts';
import { describeFailure, isNotFound } from '../state/failure-text.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';
import { focusRow } from './table.tsx';

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

/** Says why the row that an address names can't be shown. @property gone what to say if it doesn't exist */
export function NoDetails({ failure, gone, ...details }: Omit<DetailsProps, 'children'> & { failure: Failure; gone: string }) {
  return (
    <Details {...details}>
      <p>{isNotFound(failure) ? gone : describeFailure(failure)}</p>
    </Details>
  );
}

/** Shows an ID with a button to copy it. */
export function Copyable({ text, noun }: { text: string; noun: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} noun={noun} />
    </span>
  );
}

export type Fact = readonly [string, ComponentChildren];

/** Shows a list of terms with their values. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([term, text]) => (
        <>
          <dt key={`${term}-term`}>{term}</dt>
          <dd key={term}>{text}</dd>
        </>
      ))}
    </dl>
  );
}
