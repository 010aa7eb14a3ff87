import { announcement } from '../state/announcement.ts';

/** Shows the latest announcement, and has screen readers read it. */
export function Announcer() {
  return (
    <div class="announcer" role="status" aria-live="polite">
      {announcement.value !== '' && <p>{announcement.value}</p>}
    </div>
  );
}
