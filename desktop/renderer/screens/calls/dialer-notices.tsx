import type { DialerTroubleView } from '#contract/console/calls.ts';
import { Moment } from '../../components/time.tsx';
import { session } from '../../state/session.ts';

/** Explains that calls stay queued because the server has no dialer, and how to get them dialed. */
export function DialerOff() {
  if (session.value?.dialer !== 'off') return null;
  return (
    <p class="notice" role="note">
      <span>
        No provider is connected, so calls stay queued. To simulate the calls instead, restart the server with{' '}
        <code>DIALER=simulated npm start</code>.
      </span>
    </p>
  );
}

/** Shows a notice while the provider isn't accepting calls. */
export function DialerTrouble({ trouble }: { trouble: DialerTroubleView }) {
  return (
    <div role="status">
      {trouble && (
        <p class="notice">
          The provider hasn’t accepted a call since <Moment at={trouble.since} />: {trouble.reason}.
        </p>
      )}
    </div>
  );
}
