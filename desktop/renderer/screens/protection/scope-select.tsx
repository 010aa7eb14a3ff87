import { useState } from 'preact/hooks';
import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { PickerDialog } from '../../components/forms/picker-dialog.tsx';
import { capitalized } from '../../state/format/labels.ts';
import { mapped } from '../../state/loading/resource.ts';
import type { Scope } from './protection-view.ts';

export type NamedScope = Scope & { name: string };

/** Returns the partner or account that the viewer works in; null for staff who haven't selected one. */
export function homeScope({ viewer: { account, partner }, tenancy }: SessionView): NamedScope | null {
  if (account) return { kind: 'account', ...account };
  if (partner) return { kind: 'partner', ...partner };
  return tenancy;
}

type ScopeSelectProps = {
  /** The viewer's own partner or account, if it can also be chosen. */
  home: NamedScope | null;
  kinds: readonly ProtectionScope[];
  chosen: NamedScope;
  onChoose: (scope: NamedScope) => void;
};

/** Shows whose rules these are, and offers all others in the viewer's scope. */
export function ScopeSelect({ home, kinds, chosen, onChoose }: ScopeSelectProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="clip" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {capitalized(chosen.kind)} <bdi>{chosen.name}</bdi>
      </button>
      {isOpen && (
        <ScopeDialog
          home={home}
          kinds={kinds}
          onChoose={(scope) => {
            setOpen(false);
            onChoose(scope);
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

type ScopeDialogProps = Pick<ScopeSelectProps, 'home' | 'kinds' | 'onChoose'> & { onClose: () => void };

function ScopeDialog({ home, kinds, onChoose, onClose }: ScopeDialogProps) {
  return (
    <PickerDialog
      title="Choose whose rules to show"
      label="Find an account or campaign"
      listLabel="Partners, accounts and campaigns"
      placeholder="Type a name"
      find={(search) => findScopes(home, kinds, search)}
      onChoose={({ scope }) => onChoose(scope)}
      onClose={onClose}
    />
  );
}

async function findScopes(home: NamedScope | null, kinds: readonly ProtectionScope[], search: string) {
  const page = { search, cursor: null };
  const hasAccounts = home?.kind !== 'account' && kinds.includes('account');
  const campaigns = kinds.includes('campaign') ? window.callkey.request('listCampaigns', page) : Promise.resolve(noCampaigns);
  const accounts = await (hasAccounts ? window.callkey.request('listAccounts', page) : noAccounts);
  if (!accounts.ok) return accounts;
  return mapped(campaigns, (view) => ({
    options: [
      ...(home && foldText(home.name).includes(foldText(search)) ? [toOption(home, '')] : []),
      ...accounts.value.accounts.map(({ id, name }) => toOption({ kind: 'account', id, name }, '')),
      ...view.campaigns.map(({ id, name, account }) => toOption({ kind: 'campaign', id, name }, account.name)),
    ],
    isAll: accounts.value.nextCursor === null && view.nextCursor === null,
  }));
}

const noAccounts: Result<AccountsView> = { ok: true, value: { accounts: [], nextCursor: null } };
const noCampaigns: Result<CampaignsView> = { ok: true, value: { campaigns: [], nextCursor: null } };

function toOption(scope: NamedScope, parent: string) {
  const { kind, id, name } = scope;
  return { id: `${kind}/${id}`, name, caption: [capitalized(kind), parent].filter((part) => part !== '').join(' in '), scope };
}
