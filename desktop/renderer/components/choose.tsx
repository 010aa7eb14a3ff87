import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { CampaignsView } from '#contract/console/directory.ts';
import type { Failure, Result } from '../../ipc.ts';
import { describeFailure } from '../state/failure-text.ts';
import { pluralize } from '../state/format.ts';
import { mapped } from '../state/list.ts';
import { Dialog } from './dialog.tsx';
import { FormError } from './form.tsx';
import { typingMs, useDebounced, useResource } from './list.tsx';

/** @property isAll whether there are no other matches */
type Matches<Choice extends Option> = { options: Choice[]; isAll: boolean };

type PickerDialogProps<Choice extends Option> = {
  title: string;
  /** The name of the field and the list for screen readers. */
  label: string;
  listLabel: string;
  placeholder: string;
  find: (search: string) => Promise<Result<Matches<Choice>>>;
  /** Shown if there's nothing to choose from. */
  empty?: string;
  onChoose: (choice: Choice) => void;
  /** Whether the choice is being saved. */
  isBusy?: boolean;
  /** Why the last choice failed. */
  failure?: Failure | null;
  onClose: () => void;
  /** Buttons before Cancel. */
  children?: ComponentChildren;
};

/** Lets the user choose one of many entries, which the core searches as the user types. */
export function PickerDialog<Choice extends Option>(props: PickerDialogProps<Choice>) {
  const { title, label, listLabel, placeholder, find, empty, onChoose, isBusy = false, failure = null, onClose, children } = props;
  const [search, setSearch] = useState('');
  const typed = search.trim();
  const settled = useDebounced(typed, typingMs);
  const resource = useResource(() => find(settled), settled);
  const { value, isLoading, failure: findFailure } = resource.state.value;
  const matches = isLoading || findFailure || settled !== typed ? null : value;
  const why = failure ?? findFailure;
  return (
    <Dialog title={title} onDismiss={onClose}>
      <Picker
        label={label}
        listLabel={listLabel}
        placeholder={placeholder}
        search={search}
        onSearch={setSearch}
        options={matches?.options ?? null}
        onChoose={onChoose}
      />
      <FormError text={why && describeFailure(why)} />
      <p class="hint" role="status">
        {isBusy ? 'Selecting…' : findFailure ? '' : describeMatches(matches, typed, empty)}
      </p>
      <div class="actions">
        {children}
        <button type="button" aria-disabled={isBusy} onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function describeMatches(matches: Matches<Option> | null, search: string, empty = 'There’s nothing to choose from yet.'): string {
  if (matches === null) return 'Searching…';
  if (matches.options.length === 0) return search === '' ? empty : `Nothing matches “${search}”.`;
  const count = pluralize(matches.options.length, 'match', 'matches');
  return matches.isAll ? count : `Showing the first ${count}. Type more of the name to find others.`;
}

export type Option = { id: string; name: string; caption: string };

type PickerProps<Choice extends Option> = {
  /** The name of the field and the list for screen readers. */
  label: string;
  listLabel: string;
  placeholder: string;
  search: string;
  onSearch: (search: string) => void;
  /** Null while searching. */
  options: readonly Choice[] | null;
  onChoose: (option: Choice) => void;
};

/** Shows a text field above a list; arrows and Enter choose an option (ARIA APG, combobox with a listbox). */
export function Picker<Choice extends Option>(props: PickerProps<Choice>) {
  const { label, listLabel, placeholder, search, onSearch, options, onChoose } = props;
  const [active, setActive] = useState(0);
  const listId = useId();

  // Set if the user presses Enter before the search has returned. The first result for the typed text is then chosen, not an earlier
  // result.
  const isChosen = useRef(false);
  useLayoutEffect(() => {
    setActive(0);
    const [first] = options ?? [];
    if (isChosen.current && options) isChosen.current = false;
    else return;
    if (first) onChoose(first);
  }, [options]);
  useLayoutEffect(() => document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: 'nearest' }), [active, listId]);

  function onKeyDown(event: KeyboardEvent): void {
    const count = options?.length ?? 0;
    if (event.key === 'ArrowDown') setActive((active + 1) % Math.max(1, count));
    else if (event.key === 'ArrowUp') setActive((active + count - 1) % Math.max(1, count));
    else if (event.key === 'Enter') {
      isChosen.current = options === null;
      const chosen = options?.[active];
      if (chosen) onChoose(chosen);
    } else return;
    event.preventDefault();
  }

  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={options && options.length > 0 ? `${listId}-${active}` : undefined}
        placeholder={placeholder}
        value={search}
        data-autofocus
        onInput={({ currentTarget }) => {
          isChosen.current = false;
          onSearch(currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={listId} class="options" role="listbox" aria-label={listLabel}>
        {options?.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: The combobox handles the keys (ARIA APG).
          <div
            key={option.id}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onClick={() => onChoose(option)}
            onPointerMove={() => setActive(index)}
          >
            <span class="name clip">{option.name}</span>
            <span class="caption clip">{option.caption}</span>
          </div>
        ))}
      </div>
    </>
  );
}

export type Campaign = CampaignsView['campaigns'][number];

/** The first page of campaigns, which is enough for most users. */
export const firstPage = { search: '', cursor: null };

/** @param campaign null for all campaigns */
type OnChange = (id: string, campaign: Campaign | null) => void;

/**
 * @property chosen null for all campaigns
 * @property isRequired whether the user must choose a single campaign
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
  return (
    <PickerDialog
      title="Choose a campaign"
      label="Find a campaign"
      listLabel="Campaigns"
      placeholder="Type the name of a campaign or account"
      find={findCampaigns}
      onChoose={({ id, campaign }) => onChoose(id, campaign)}
      onClose={onClose}
    >
      {hasAll && (
        <button type="button" onClick={() => onChoose('', null)}>
          All campaigns
        </button>
      )}
    </PickerDialog>
  );
}

function findCampaigns(search: string) {
  return mapped(window.callkey.request('listCampaigns', { search, cursor: null }), ({ campaigns, nextCursor }) => ({
    options: campaigns.map((campaign) => ({ id: campaign.id, name: campaign.name, caption: campaign.account.name, campaign })),
    isAll: nextCursor === null,
  }));
}

const selectId = 'campaign';

/** Moves the focus back to the select, because choosing another campaign replaces the screen and the focused element. */
export function focusCampaignSelect(): void {
  requestAnimationFrame(() => document.getElementById(selectId)?.focus());
}

function byAccount({ campaigns }: CampaignsView): CampaignsView['campaigns'][] {
  return [...Map.groupBy(campaigns, ({ account }) => account.id).values()];
}
