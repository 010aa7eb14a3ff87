import { useMemo, useState } from 'preact/hooks';
import type { CampaignsView } from '#contract/console/directory.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { type Option, Picker } from '../../components/forms/picker.tsx';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { useResource } from '../../components/loadable.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';

export type Campaign = CampaignsView['campaigns'][number];

/** The first page of campaigns, which is enough for most users. */
export const firstPage = { search: '', cursor: null };

/** @param campaign null for all campaigns */
type OnChange = (id: string, campaign: Campaign | null) => void;

/**
 * @property chosen null for all campaigns
 * @property isRequired whether all campaigns together aren't a choice
 */
type CampaignSelectProps = { campaigns: CampaignsView; chosen: Campaign | null; isRequired?: boolean; onChange: OnChange };

/** Offers the campaigns grouped by account, or a search if there are more than a list can show. */
export function CampaignSelect(props: CampaignSelectProps) {
  return props.campaigns.nextCursor === null ? <CampaignList {...props} /> : <CampaignSearch {...props} />;
}

function CampaignList({ campaigns, chosen, isRequired = false, onChange }: CampaignSelectProps) {
  return (
    <select
      id={selectId}
      aria-label="Campaign"
      value={chosen?.id ?? ''}
      onChange={({ currentTarget: { value } }) => onChange(value, campaigns.campaigns.find(({ id }) => id === value) ?? null)}
    >
      {!isRequired && campaigns.campaigns.length > 1 && <option value="">All campaigns</option>}
      {byAccount(campaigns).map((items) => (
        <optgroup key={items[0]?.account.id} label={items[0]?.account.name}>
          {items.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

function CampaignSearch({ chosen, isRequired = false, onChange }: CampaignSelectProps) {
  const [isOpen, setOpen] = useState(false);
  const choose: OnChange = (...choice) => {
    setOpen(false);
    onChange(...choice);
  };
  return (
    <>
      <button type="button" id={selectId} class="clip" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {chosen === null ? 'Choose a campaign…' : chosen.name}
      </button>
      {isOpen && <CampaignDialog hasAll={!isRequired && chosen !== null} onChoose={choose} onClose={() => setOpen(false)} />}
    </>
  );
}

type CampaignDialogProps = { hasAll: boolean; onChoose: OnChange; onClose: () => void };

function CampaignDialog({ hasAll, onChoose, onClose }: CampaignDialogProps) {
  const [search, setSearch] = useState('');
  const settled = useDebounced(search.trim(), typingMs);
  const resource = useResource(() => window.callkey.request('listCampaigns', { search: settled, cursor: null }), settled);
  const { value, failure, isLoading } = resource.state.value;
  const isSearching = isLoading || settled !== search.trim();
  const options = useMemo(() => value?.campaigns.map(toOption) ?? null, [value]);
  return (
    <Dialog title="Choose a campaign" onDismiss={onClose}>
      <Picker
        label="Find a campaign"
        listLabel="Campaigns"
        placeholder="Type the name of a campaign or account"
        search={search}
        onSearch={setSearch}
        options={isSearching ? null : options}
        onChoose={({ id }) => onChoose(id, value?.campaigns.find((each) => each.id === id) ?? null)}
      />
      <FormError text={failure && describeFailure(failure)} />
      <p class="hint" role="status">
        {describeMatches(value, isSearching)}
      </p>
      <div class="actions">
        {hasAll && (
          <button type="button" onClick={() => onChoose('', null)}>
            All campaigns
          </button>
        )}
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function describeMatches(view: CampaignsView | null, isSearching: boolean): string {
  if (view === null || isSearching) return 'Searching…';
  const count = pluralize(view.campaigns.length, 'match', 'matches');
  return view.nextCursor === null ? count : `Showing the first ${count}. Type more of the name to find others.`;
}

function toOption({ id, name, account }: Campaign): Option {
  return { id, name, caption: account.name };
}

const selectId = 'campaign';

/** Moves the focus back to the select, because choosing another campaign replaces the screen and the focused element. */
export function focusCampaignSelect(): void {
  requestAnimationFrame(() => document.getElementById(selectId)?.focus());
}

function byAccount({ campaigns }: CampaignsView): CampaignsView['campaigns'][] {
  return [...Map.groupBy(campaigns, ({ account }) => account.id).values()];
}
