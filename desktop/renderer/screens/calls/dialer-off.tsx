import { session } from '../../state/session.ts';

/** Explains that calls stay queued because the server has no dialer, and how to get them dialed. */
export function DialerOff() {
  if (session.value?.dialer !== 'off') return null;
  return (
    <p class="notice" role="note">
      <span>
        No provider is connected, so calls stay queued. To see them dialed without a phone ringing, restart the server with{' '}
        <code>DIALER=simulated npm start</code>.
      </span>
    </p>
  );
}
