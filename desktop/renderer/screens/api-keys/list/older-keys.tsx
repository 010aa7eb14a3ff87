import type { ApiKeysView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { useAction } from '../../../components/forms/use-action.ts';
import { describeFailure } from '../../../state/format/failure-text.ts';
import { formatNumber } from '../../../state/format/format.ts';
import type { Resource } from '../../../state/loading/resource.ts';
import { withOlderKeys } from '../../../state/older-keys.ts';

/** Says that older keys aren't listed, and loads more of them. */
export function OlderKeys({ resource }: { resource: Resource<ApiKeysView> }) {
  const { isBusy, failure, run } = useAction();
  const view = resource.state.value.value;
  const listed = view?.apiKeys.length ?? 0;
  const missing = view ? view.total - listed : 0;
  if (!view || missing <= 0) return null;
  return (
    <div class="notice">
      <p>
        Showing the newest {formatNumber(listed)} of {formatNumber(view.total)} keys. Search and filters apply only to these.{' '}
        <span role="alert">{failure && describeFailure(failure)}</span>
      </p>
      <button
        type="button"
        class="link"
        aria-disabled={isBusy}
        onClick={() =>
          void run(
            () => withOlderKeys(resource.state.peek().value ?? view),
            (longer) => resource.change(longer),
          )
        }
      >
        Load the {missing > limits.listedApiKeys ? `next ${formatNumber(limits.listedApiKeys)}` : `other ${formatNumber(missing)}`}
      </button>
    </div>
  );
}
