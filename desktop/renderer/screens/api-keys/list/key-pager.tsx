import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { Icon } from '../../../components/icons.tsx';
import { formatNumber, pluralize } from '../../../state/format/format.ts';
import { scrollToTop } from '../../../state/navigation.ts';
import { writePreference } from '../../../state/preferences.ts';
import { paginate } from './key-list.ts';
import type { KeyToolbarProps } from './key-toolbar.tsx';

type KeyPagerProps = Omit<KeyToolbarProps, 'keys'> & { matches: readonly ApiKeyView[] };

/** Shows the position of the page, its number of rows, and the buttons to other pages. */
export function KeyPager({ matches, settings, onChange }: KeyPagerProps) {
  const { size } = settings;
  const page = paginate(matches, settings.page, size);
  const go = (index: number) => {
    onChange({ page: index });
    scrollToTop();
  };
  return (
    <>
      <span role="status">
        {page.count > 1 && `${formatNumber(page.first)}–${formatNumber(page.last)} of `}
        {matches.length === 0 ? 'No keys' : pluralize(matches.length, 'key')}
      </span>
      <span class="end">
        <label>
          Rows per page{' '}
          <select
            value={String(size)}
            onChange={({ currentTarget }) => {
              const rows = Number(currentTarget.value);
              writePreference('rows', String(rows));
              onChange({ size: rows, page: Math.floor(Math.max(0, page.first - 1) / rows) });
            }}
          >
            {limits.pageSizes.map((rows) => (
              <option key={rows} value={String(rows)}>
                {rows}
              </option>
            ))}
          </select>
        </label>
        <PageButton label="Previous page" icon="back" isPossible={page.index > 0} onPress={() => go(page.index - 1)} />
        <span>
          Page {formatNumber(page.index + 1)} of {formatNumber(page.count)}
        </span>
        <PageButton label="Next page" icon="forward" isPossible={page.index < page.count - 1} onPress={() => go(page.index + 1)} />
      </span>
    </>
  );
}

type PageButtonProps = { label: string; icon: 'back' | 'forward'; isPossible: boolean; onPress: () => void };

function PageButton({ label, icon, isPossible, onPress }: PageButtonProps) {
  return (
    <button type="button" class="icon-only" aria-label={label} aria-disabled={!isPossible} onClick={() => isPossible && onPress()}>
      <Icon name={icon} />
    </button>
  );
}
