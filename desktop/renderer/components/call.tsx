import { callStateLabels } from '#contract/calls/states.ts';
import type { CallView } from '#contract/console/calls.ts';
import { callStateTones } from '../state/labels.ts';
import { session } from '../state/session.ts';

/** Shows the outcome of a call, and whether it's simulated, unless the detail next to it already says so. */
export function CallBadge({ call: { state, simulated, detail } }: { call: CallView }) {
  return (
    <>
      <span class={`badge ${callStateTones[state]}`}>{callStateLabels[state]}</span>{' '}
      {simulated && !detail?.startsWith('Simulated') && <span class="badge">Simulated</span>}
    </>
  );
}

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
