import { announcement, dismissAnnouncement, warning, whisper } from '../state/announcement.ts';

/** Shows the latest announcement. In a dialog, it's only read, because it would cover the buttons; a warning is shown there, too. */
export function Announcer({ isHidden = false }: { isHidden?: boolean }) {
  return (
    <>
      <div class={isHidden ? 'visually-hidden' : 'announcer'} role="status" aria-live="polite">
        {announcement.value !== '' && <p>{announcement.value}</p>}
      </div>
      <div class={isHidden ? undefined : 'announcer'} role="alert">
        {warning.value !== '' && (
          <p class={isHidden ? 'error' : undefined}>
            {warning.value}{' '}
            <button type="button" class="link" onClick={dismissAnnouncement}>
              Dismiss
            </button>
          </p>
        )}
      </div>
      {!isHidden && (
        <div class="visually-hidden" role="status" aria-live="polite">
          {whisper.value}
        </div>
      )}
    </>
  );
}
