import { announcement } from '../state/announcement.ts';

/** Shows the latest announcement, and has screen readers read it; only the latter in a dialog, whose buttons it would cover. */
export function Announcer({ isHidden = false }: { isHidden?: boolean }) {
  return (
    <div class={isHidden ? 'visually-hidden' : 'announcer'} role="status" aria-live="polite">
      {announcement.value !== '' && <p>{announcement.value}</p>}
    </div>
  );
}
