import { announcement } from '../state/announcement.ts';

/** Tells a screen reader, and everybody else, what has just happened. */
export function Announcer() {
  return (
    <div class="announcer" role="status" aria-live="polite">
      {announcement.value !== '' && <p>{announcement.value}</p>}
    </div>
  );
}
