import { useMemo } from 'preact/hooks';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { now } from '../../../state/clock.ts';
import { formatNumber } from '../../../state/format/format.ts';
import { filterKeys, keyFilterLabels, keyFilters, listOwners } from './key-list.ts';
import type { KeyListView } from './key-list-view.ts';

export type KeyToolbarProps = { keys: readonly ApiKeyView[]; settings: KeyListView; onChange: (changes: Partial<KeyListView>) => void };

/** Shows the search, the owner and the filters. */
export function KeyToolbar({ keys, settings: { search, filter, owner }, onChange }: KeyToolbarProps) {
  const owners = useMemo(() => listOwners(keys), [keys]);
  const counts = useMemo(
    () => keyFilters.map((name) => ({ name, count: filterKeys(keys, '', name, now.value, owner).length })),
    [keys, now.value, owner],
  );
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search by name</span>
        <input
          type="search"
          placeholder="Search by name"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
      {owners.size > 1 && (
        <label>
          <span class="visually-hidden">Owner</span>
          <select value={owner} onChange={({ currentTarget }) => onChange({ owner: currentTarget.value })}>
            <option value="">All owners</option>
            {[...owners].map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons. */}
      <div class="chips" role="group" aria-label="Show">
        {counts.map(({ name, count }) => {
          if (count === 0 && name !== 'all' && name !== filter) return null;
          return (
            <button key={name} type="button" aria-pressed={name === filter} onClick={() => onChange({ filter: name })}>
              {keyFilterLabels[name]} {formatNumber(count)}
            </button>
          );
        })}
      </div>
    </search>
  );
}
