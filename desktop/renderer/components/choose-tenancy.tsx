import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../ipc.ts';
import { capitalized } from '../state/labels.ts';
import { mapped } from '../state/list.ts';
import type { Tenancy } from '../state/tenancy.ts';
import { Choose, type Matches, type Option } from './choose.tsx';

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
      chosen={chosen && { ...toOption(chosen, ''), name: `${capitalized(chosen.kind)} ${chosen.name}` }}
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
