import type { DialerTroubleView } from '#contract/console.ts';
import { Moment } from '../../components/time.tsx';

/** Says that no calls get through, as long as that is so. */
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
