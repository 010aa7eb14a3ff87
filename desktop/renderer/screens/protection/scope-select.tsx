import { useMemo, useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import { folded } from '#contract/text/text.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { type Option, Picker } from '../../components/forms/picker.tsx';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { useResource } from '../../components/loadable.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { capitalized } from '../../state/format/labels.ts';
import type { Scope } from './protection-view.ts';

export type NamedScope = Scope & { name: string };

/** Returns the partner or account that the viewer works in; null for staff who haven't selected one. */
export function homeScope({ viewer: { account, partner }, tenancy }: SessionView): NamedScope | null {
  if (account) return { kind: 'account', ...account };
  if (partner) return { kind: 'partner', ...partner };
  return tenancy;
}

type ScopeSelectProps = {
  /** The viewer's partner or account if it can be chosen, too. */
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
  const [search, setSearch] = useState('');
  const settled = useDebounced(search.trim(), typingMs);
  const scopes = useScopes(home, kinds, settled);
  const isSearching = scopes === null || settled !== search.trim();
  const options = useMemo(() => scopes?.map(toOption) ?? null, [scopes]);
  return (
    <Dialog title="Choose whose rules to show" onDismiss={onClose}>
      <Picker
        label="Find an account or campaign"
        listLabel="Partners, accounts and campaigns"
        placeholder="Type a name"
        search={search}
        onSearch={setSearch}
        options={isSearching ? null : options}
        onChoose={({ id }) => {
          const scope = scopes?.find((each) => toOption(each).id === id);
          if (scope) onChoose(scope);
        }}
      />
      <p class="hint" role="status">
        {isSearching ? 'Searching…' : options?.length === 0 ? 'No matches' : ''}
      </p>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

type ListedScope = NamedScope & { parent: string };

function useScopes(home: NamedScope | null, kinds: readonly ProtectionScope[], search: string): ListedScope[] | null {
  const page = { search, cursor: null };
  const hasAccounts = home?.kind !== 'account' && kinds.includes('account');
  const hasCampaigns = kinds.includes('campaign');
  const accounts = useResource(() => window.callkey.request('listAccounts', page), `accounts ${hasAccounts} ${search}`).state.value;
  const campaigns = useResource(() => window.callkey.request('listCampaigns', page), `campaigns ${hasCampaigns} ${search}`).state.value;
  return useMemo(() => {
    if (accounts.isLoading || campaigns.isLoading) return null;
    const isMatch = home && folded(home.name).includes(folded(search));
    return [
      ...(isMatch ? [{ ...home, parent: '' }] : []),
      ...(hasAccounts ? (accounts.value?.accounts ?? []).map(({ id, name }) => ({ kind: 'account' as const, id, name, parent: '' })) : []),
      ...(hasCampaigns
        ? (campaigns.value?.campaigns ?? []).map(({ id, name, account }) => ({ kind: 'campaign' as const, id, name, parent: account.name }))
        : []),
    ];
  }, [accounts, campaigns, search]);
}

function toOption({ kind, id, name, parent }: ListedScope): Option {
  return { id: `${kind}/${id}`, name, caption: [capitalized(kind), parent].filter((part) => part !== '').join(' in ') };
}
