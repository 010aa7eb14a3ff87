import type { ComponentChildren } from 'preact';
import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { Choose, type Matches, type Option } from '../../components/choose.tsx';
import { useForm } from '../../components/form.tsx';
import { isConflict } from '../../state/failure-text.ts';
import { defineFilters, oneOf, text, unwritten } from '../../state/filters.ts';
import { capitalized } from '../../state/labels.ts';
import { type List, mapped } from '../../state/list.ts';
import type { Tenancy } from '../../state/tenancy.ts';

/**
 * The user's filters on the screen.
 *
 * @property scope the kind and ID of the tenancy whose rules are shown, such as `account/ID`; empty for the viewer's own
 * @property scopeName its name, once the user has chosen one
 */
type Filters = { tab: 'do-not-call' | 'calling-hours' | 'numbers' | 'limits'; search: string; scope: string; scopeName: string };

export const screenFilters = defineFilters<Filters>('protection', ['tab'], {
  tab: oneOf(['do-not-call', 'calling-hours', 'numbers', 'limits'], 'do-not-call'),
  search: text(),
  scope: text(),
  scopeName: unwritten(''),
});

/** The properties of each tab, which shows its own page with the tabs at the top. */
export type TabProps = {
  title: string;
  /** The viewer's own tenancy. */
  own: Tenancy;
  /** Account users see everything about their account, but can only add numbers. */
  canChange: boolean;
  filters: Filters;
  onChange: (changes: Partial<Filters>) => void;
  tabs: ComponentChildren;
  /** @param shown whose rules the tab shows */
  actions: (shown: Tenancy) => ComponentChildren;
};

/** Returns the tenancy whose rules are shown: the one in the address, or the viewer's own. After a reload, its name is empty. */
export function chosenTenancy(own: Tenancy, { scope, scopeName }: Filters): Tenancy {
  const [, kind, id] = /^(partner|account|campaign)\/(.+)$/.exec(scope) ?? [];
  const isKind = kind === 'partner' || kind === 'account' || kind === 'campaign';
  return isKind && id !== undefined ? { kind, id, name: scopeName } : own;
}

/** Returns the filters for a tenancy that the user has chosen, the inverse of `chosenTenancy`. */
function toFilters(own: Tenancy, { kind, id, name }: Tenancy): Partial<Filters> {
  return { scope: id === own.id ? '' : `${kind}/${id}`, scopeName: name };
}

/** Returns the tenancy with its name from the rules that were loaded for it. */
export function withName(chosen: Tenancy, loaded: { scope: Tenancy } | null): Tenancy {
  return loaded?.scope.id === chosen.id ? loaded.scope : chosen;
}

type ChooseTenancyProps = {
  /** The viewer's own tenancy, if it can also be chosen. */
  own: Tenancy | null;
  kinds: readonly ProtectionScope[];
  chosen: Tenancy;
  onChoose: (tenancy: Tenancy) => void;
};

type RulesHeadProps = Pick<TabProps, 'tabs' | 'own' | 'onChange'> & Pick<ChooseTenancyProps, 'kinds' | 'chosen'>;

/** Shows whose rules these are, and offers all others in the viewer's scope. */
export function ChooseTenancy({ own, kinds, chosen, onChoose }: ChooseTenancyProps) {
  return (
    <Choose<TenancyOption>
      dialog={{
        title: 'Choose whose rules to show',
        label: 'Find an account or campaign',
        listLabel: 'Partners, accounts and campaigns',
        placeholder: 'Type a name',
        find: (search) => findTenancies(own, kinds, search),
      }}
      first={null}
      chosen={null}
      invitation={
        <>
          {capitalized(chosen.kind)} <bdi>{chosen.name}</bdi>
        </>
      }
      onChoose={(choice) => choice && onChoose(choice.tenancy)}
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

/** Shows the tabs and, for a tab with one tenancy's rules, whose rules these are. */
export function RulesHead({ tabs, own, kinds, chosen, onChange }: RulesHeadProps) {
  return (
    <>
      {tabs}
      <div class="toolbar">
        <ChooseTenancy {...{ own, kinds, chosen }} onChoose={(tenancy) => onChange(toFilters(own, tenancy))} />
      </div>
    </>
  );
}

/** Saves rules. If someone else has changed them in the meantime, loads these changes, so that the form can warn about them. */
export async function saveRules<Saved>(list: Pick<List<unknown>, 'refresh'>, save: () => Promise<Result<Saved>>): Promise<Result<Saved>> {
  const result = await save();
  if (!result.ok && isConflict(result.failure)) await list.refresh();
  return result;
}

/** Warns in a form that someone else has saved the same rules since the user started to edit them. */
export function Outdated({ isOutdated, children }: { isOutdated: boolean; children: ComponentChildren }) {
  const { isBusy } = useForm();
  if (!isOutdated || isBusy) return null;
  return (
    <p class="warning" role="status">
      {children}
    </p>
  );
}
