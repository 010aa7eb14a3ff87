import type { DialerTroubleView } from '#contract/console.ts';
import { Moment } from '../../components/time.tsx';

/** Says that the provider isn't accepting calls, for as long as that lasts. */
export function DialerTrouble({ trouble }: { trouble: DialerTroubleView }) {
  return (
    <div role="status">
      {trouble && (
        <p class="notice">
          The provider hasn’t taken a call since <Moment at={trouble.since} />: {trouble.reason}.
        </p>
      )}
    </div>
  );
}
