import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { PickerDialog } from '../../components/choose.tsx';
import { isConflict } from '../../state/failure-text.ts';
import { capitalized } from '../../state/labels.ts';
import { mapped, type Resource } from '../../state/list.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { type ProtectionView, readScope, type Scope } from '../../state/protection.ts';

/** The props of each tab, which shows its own page with the tabs at the top. */
export type TabProps = ScreenProps & {
  home: NamedScope;
  /** Account users see everything about their account, but can only add numbers. */
  canChange: boolean;
  view: ProtectionView;
  onView: (changes: Partial<ProtectionView>) => void;
  tabs: ComponentChildren;
  check: ComponentChildren;
};

/** Returns the scope in the address, or the viewer's own. After a reload, its name is empty: see {@link withName}. */
export function useScope(home: NamedScope, view: ProtectionView, onView: (changes: Partial<ProtectionView>) => void) {
  const chosen = readScope(view.scope);
  return {
    scope: chosen ? { ...chosen, name: view.scopeName } : home,
    choose: ({ kind, id, name }: NamedScope) => onView({ scope: id === home.id ? '' : `${kind}/${id}`, scopeName: name }),
  };
}

/** Returns the scope with its name from the rules that were loaded for it. */
export function withName(scope: NamedScope, loaded: { scope: NamedScope } | null): NamedScope {
  return loaded?.scope.id === scope.id ? loaded.scope : scope;
}

/** Saves rules. If someone else has changed them in the meantime, loads these changes, so that the form can warn about them. */
export async function saveRules<View>(resource: Resource<View>, save: () => Promise<Result<View>>): Promise<Result<View>> {
  const result = await save();
  if (!result.ok && isConflict(result.failure)) await resource.refresh();
  return result;
}

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
