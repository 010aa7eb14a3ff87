import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Named } from '#contract/console/common.ts';
import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import { limits } from '#contract/limits.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { foldText } from '#contract/text/text.ts';
import type { Failure, Result } from '../../ipc.ts';
import { describeFailure } from '../state/failure-text.ts';
import { shorten } from '../state/format.ts';
import { capitalized } from '../state/labels.ts';
import { type List, mapped } from '../state/list.ts';
import type { Tenancy } from '../state/protection.ts';
import { Dialog } from './dialog.tsx';
import { ErrorText, Field } from './form.tsx';
import { Icon } from './icons.tsx';
import { Loadable, useFound, useList } from './list.tsx';

export type Option = { id: string; name: string; caption: string };

/** @property isAll whether there are no other matches */
export type Matches<Choice extends Option> = { options: Choice[]; isAll: boolean };

type Find<Choice extends Option> = (search: string) => Promise<Result<Matches<Choice>>>;

/** @property label the name of the field, and `listLabel` that of the list, for screen readers */
type PickerTexts = { label: string; listLabel: string; placeholder: string };

type ChooseProps<Choice extends Option> = {
  /** The name of what's chosen, unless a field around it has one: "Campaign". */
  label?: string;
  dialog: PickerTexts & { title: string; find: Find<Choice> };
  /** The first matches. Null if there may always be too many to list. */
  first: Matches<Choice> | null;
  chosen: Choice | null;
  /** What it means to have chosen nothing: "All campaigns". Without it, the user must choose something. */
  none?: string | undefined;
  /** The ID of a group, whose name is the caption of each choice in it. */
  groupBy?: (choice: Choice) => string;
  /** What the button says while nothing is chosen. */
  invitation?: ComponentChildren;
  onChoose: (choice: Choice | null) => void;
  /** The attributes of the list or the button. */
  control?: { id?: string };
};

/** Lets the user choose one of many: from a list, or by searching if there are more than a list can show. */
export function Choose<Choice extends Option>(props: ChooseProps<Choice>) {
  const { label, dialog, first, chosen, none, groupBy, invitation = `${dialog.title}…`, onChoose, control } = props;
  const [isOpen, setOpen] = useState(false);
  const choose = (choice: Choice | null) => {
    setOpen(false);
    onChoose(choice);
  };
  if (first?.isAll) {
    return (
      <select
        {...control}
        aria-label={label}
        value={chosen?.id ?? ''}
        onChange={({ currentTarget }) => onChoose(first.options.find(({ id }) => id === currentTarget.value) ?? null)}
      >
        {none !== undefined && <option value="">{none}</option>}
        {groupBy
          ? [...Map.groupBy(first.options, groupBy).entries()].map(([id, options]) => (
              <optgroup key={id} label={options[0]?.caption}>
                <Options options={options} />
              </optgroup>
            ))
          : [<Options key="all" options={first.options} />]}
      </select>
    );
  }
  return (
    <>
      <button type="button" {...control} class="opener" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <span class="clip">{chosen ? <bdi>{chosen.name}</bdi> : invitation}</span>
        <Icon name="switch" />
      </button>
      {isOpen && (
        <PickerDialog {...dialog} onChoose={choose} onClose={() => setOpen(false)}>
          {none !== undefined && chosen !== null && (
            <button type="button" onClick={() => choose(null)}>
              {none}
            </button>
          )}
        </PickerDialog>
      )}
    </>
  );
}

function Options({ options }: { options: readonly Option[] }) {
  return options.map(({ id, name }) => (
    <option key={id} value={id}>
      {name}
    </option>
  ));
}

type ChooseFieldProps = Pick<ChooseProps<Option>, 'none' | 'onChoose'> & {
  name: string;
  label: string;
  noun: 'partner' | 'account';
  find: Find<Option>;
  chosen: Named | null;
  /** Whether the first option is chosen already, because there's no other. */
  isOnlyOne?: boolean;
};

export function ChooseField({ name, label, noun, find, chosen, none, isOnlyOne = false, onChoose }: ChooseFieldProps) {
  const list = useList({ key: `options/${noun}`, every: null, load: () => find('') });
  const one = `${noun === 'account' ? 'an' : 'a'} ${noun}`;
  return (
    <Loadable list={list} noun={`${noun}s`}>
      {(first) => (
        <Field name={name} label={label}>
          {(control) => (
            <Choose
              dialog={{
                title: `Choose ${one}`,
                label: `Find ${one}`,
                listLabel: capitalized(`${noun}s`),
                placeholder: 'Type a name',
                find,
              }}
              first={first}
              chosen={isOnlyOne ? (first.options[0] ?? null) : chosen && { ...chosen, caption: '' }}
              none={isOnlyOne ? undefined : none}
              invitation={none}
              onChoose={onChoose}
              control={control}
            />
          )}
        </Field>
      )}
    </Loadable>
  );
}

export type Campaign = CampaignsView['campaigns'][number] & Option;

/** Loads the first page of campaigns, which is enough for most users. */
export function useCampaigns(every: number | null): List<Matches<Campaign>> {
  return useList({ key: 'campaigns', every, load: () => findCampaigns('') });
}

export function findCampaigns(search: string): Promise<Result<Matches<Campaign>>> {
  return mapped(window.callkey.request('listCampaigns', { search, cursor: null }), ({ campaigns, nextCursor }) => ({
    options: campaigns.map((campaign) => ({ ...campaign, caption: campaign.account.name })),
    isAll: nextCursor === null,
  }));
}

const campaignControl = 'campaign';

/** Moves the focus back to the choice, because choosing another campaign replaces the screen and the focused element. */
export function focusCampaignChoice(): void {
  queueMicrotask(() => document.getElementById(campaignControl)?.focus());
}

type ChooseCampaignProps = Pick<ChooseProps<Campaign>, 'chosen' | 'none' | 'onChoose'> & { campaigns: Matches<Campaign> };

export function ChooseCampaign({ campaigns, none, ...choice }: ChooseCampaignProps) {
  return (
    <Choose
      label="Campaign"
      dialog={{
        title: 'Choose a campaign',
        label: 'Find a campaign',
        listLabel: 'Campaigns',
        placeholder: 'Type the name of a campaign or account',
        find: findCampaigns,
      }}
      first={campaigns}
      groupBy={({ account }) => account.id}
      none={campaigns.isAll && campaigns.options.length === 1 ? undefined : none}
      control={{ id: campaignControl }}
      {...choice}
    />
  );
}

type PickerDialogProps<Choice extends Option> = PickerTexts & {
  title: string;
  find: Find<Choice>;
  /** Shown if there's nothing to choose from. */
  empty?: string;
  onChoose: (choice: Choice) => void;
  /** Whether the choice is being saved. */
  isBusy?: boolean;
  failure?: Failure | null;
  onClose: () => void;
  children?: ComponentChildren;
};

/** Lets the user choose one of many entries, which the core searches as the user types. */
export function PickerDialog<Choice extends Option>(props: PickerDialogProps<Choice>) {
  const { title, find, empty, onChoose, isBusy = false, failure = null, onClose, children, ...texts } = props;
  const [search, setSearch] = useState('');
  const { found, failure: findFailure } = useFound(search, find);
  const why = failure ?? findFailure;
  return (
    <Dialog title={title} onDismiss={onClose}>
      <Picker {...texts} search={search} onSearch={setSearch} options={found?.options ?? null} onChoose={onChoose} />
      <ErrorText text={why && describeFailure(why)} />
      <p class="hint" role="status">
        {isBusy ? 'Selecting…' : findFailure ? '' : describeMatches(found, search.trim(), empty)}
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
  if (matches.options.length === 0) return search === '' ? empty : `Nothing matches “${shorten(search)}”.`;
  const count = counted(matches.options.length, 'match', 'matches');
  return matches.isAll ? count : `Showing the first ${count}. Type more of the name to find others.`;
}

type PickerProps<Choice extends Option> = PickerTexts & {
  search: string;
  onSearch: (search: string) => void;
  /** Null while searching. */
  options: readonly Choice[] | null;
  onChoose: (option: Choice) => void;
};

/** Shows a text field above a list; arrows and Enter choose an option (ARIA APG, combobox with a listbox). */
export function Picker<Choice extends Option>(props: PickerProps<Choice>) {
  const { label, listLabel, placeholder, search, onSearch, options, onChoose } = props;
  const [activeId, setActive] = useState('');
  const listId = useId();
  // Results that arrive later don't move what the user has chosen with the arrows.
  const active = Math.max(0, options?.findIndex(({ id }) => id === activeId) ?? 0);

  // Set if the user presses Enter before the search has returned. The first result for the typed text is then chosen.
  const isChosen = useRef(false);
  useLayoutEffect(() => {
    const [first] = options ?? [];
    if (isChosen.current && options) isChosen.current = false;
    else return;
    if (first) onChoose(first);
  }, [options]);
  useLayoutEffect(() => document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: 'nearest' }), [active, listId]);

  function onKeyDown(event: KeyboardEvent): void {
    const move = (step: 1 | -1) => setActive(options?.at((active + step) % options.length)?.id ?? '');
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
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
          setActive('');
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
            onPointerMove={() => setActive(option.id)}
          >
            <span class="name clip">{option.name}</span>
            <span class="caption clip end">{option.caption}</span>
          </div>
        ))}
      </div>
    </>
  );
}

type ChooseTenancyProps = {
  title: string;
  /** The viewer's own tenancy, if it can also be chosen. */
  own: Tenancy | null;
  kinds: readonly ProtectionScope[];
  chosen: Tenancy | null;
  /** Offered as well: something else than a tenancy, which is chosen if `chosen` is null. */
  other?: { label: string; onChoose: () => void } | undefined;
  onChoose: (tenancy: Tenancy) => void;
};

export function ChooseTenancy({ title, own, kinds, chosen, other, onChoose }: ChooseTenancyProps) {
  return (
    <Choose<TenancyOption>
      dialog={{
        title,
        label: 'Find an account or campaign',
        listLabel: 'Partners, accounts and campaigns',
        placeholder: 'Type a name',
        find: (search) => findTenancies(own, kinds, search),
      }}
      first={null}
      chosen={chosen && { ...toOption(chosen, ''), name: `${capitalized(chosen.kind)} ${chosen.name || '…'}` }}
      none={other?.label}
      invitation={other?.label}
      onChoose={(choice) => (choice ? onChoose(choice.tenancy) : other?.onChoose())}
    />
  );
}

type TenancyOption = Option & { tenancy: Tenancy };

async function findTenancies(
  own: Tenancy | null,
  kinds: readonly ProtectionScope[],
  search: string,
): Promise<Result<Matches<TenancyOption>>> {
  const page = { search, cursor: null };
  const hasAccounts = own?.kind !== 'account' && kinds.includes('account');
  const campaigns = kinds.includes('campaign') ? window.callkey.request('listCampaigns', page) : Promise.resolve(noCampaigns);
  const accounts = await (hasAccounts ? window.callkey.request('listAccounts', page) : noAccounts);
  if (!accounts.ok) return accounts;
  return mapped(campaigns, (view) => ({
    options: [
      ...(own && foldText(own.name).includes(foldText(search)) ? [toOption(own, '')] : []),
      ...accounts.value.accounts.map(({ id, name }) => toOption({ kind: 'account', id, name }, '')),
      ...view.campaigns.map(({ id, name, account }) => toOption({ kind: 'campaign', id, name }, account.name)),
    ],
    isAll: accounts.value.nextCursor === null && view.nextCursor === null,
  }));
}

const noAccounts: Result<AccountsView> = { ok: true, value: { accounts: [], nextCursor: null } };
const noCampaigns: Result<CampaignsView> = { ok: true, value: { campaigns: [], nextCursor: null } };

function toOption(tenancy: Tenancy, parent: string): TenancyOption {
  const { kind, id, name } = tenancy;
  return { id: `${kind}/${id}`, name, caption: [capitalized(kind), parent].filter((part) => part !== '').join(' in '), tenancy };
}

/** Finds accounts and partners everywhere, for staff. */
export function findCustomers(search: string) {
  return mapped(window.callkey.request('searchTenancies', { search }), ({ tenancies }) => ({
    options: tenancies.map((tenancy) => {
      const { kind, id, name, partnerName = '' } = tenancy;
      return { id: `${kind}:${id}`, name, caption: kind === 'partner' ? 'Partner' : `Account · ${partnerName}`, tenancy };
    }),
    isAll: tenancies.length < limits.tenancies,
  }));
}
