import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { linkTo } from '../state/addresses.ts';
import { whisper } from '../state/announcement.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';

type DetailsProps = { title: string; badge?: ComponentChildren; onClose: () => void; children: ComponentChildren };

/** Shows a panel about the selected row, next to the list, or over it if there isn't enough room. Escape closes it. */
export function Details({ title, badge, onClose, children }: DetailsProps) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    whisper.value = `Details for ${title} opened`;
    return () => {
      whisper.value = 'Details closed';
    };
  }, [title]);
  // A layout effect, because if Escape is pressed right after an arrow key, the focus must return to the row that the panel now shows.
  useLayoutEffect(() => {
    const closeOnEscape = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) onClose();
    };
    document.addEventListener('keydown', closeOnEscape);
    return () => document.removeEventListener('keydown', closeOnEscape);
  }, [onClose]);
  return (
    <aside ref={ref} class="details" aria-label={`Details for ${title}`}>
      <div>
        <div class="title-row">
          <h2>
            <bdi>{title}</bdi>
          </h2>
          <CopyButton text={() => linkTo(location.hash)} noun="link" icon="link" />
          <button type="button" class="quiet icon-only" aria-label="Close details" data-tip="Close (Esc)" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {badge}
      </div>
      {children}
    </aside>
  );
}

/** Shows a list of terms with their values. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
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
