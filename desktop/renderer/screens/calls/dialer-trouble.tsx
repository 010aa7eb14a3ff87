import type { DialerTroubleView } from '#contract/console.ts';
import { Moment } from '../../components/time.tsx';

/** Says that no calls get through, for as long as that is the case. */
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
