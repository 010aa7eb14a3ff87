import type { ComponentChildren } from 'preact';
import { type ProtectionScope, protectionScopes } from '#contract/protection/protection.ts';
import type { Result } from '../../../ipc.ts';
import { ChooseTenancy } from '../../components/choose.tsx';
import { useForm } from '../../components/form.tsx';
import { isConflict } from '../../state/failure-text.ts';
import { defineFilters, oneOf, text, unwritten } from '../../state/filters.ts';
import type { List } from '../../state/list.ts';
import type { Tenancy } from '../../state/protection.ts';

export const screenFilters = defineFilters('protection', ['tab'], {
  tab: oneOf(['do-not-call', 'calling-hours', 'numbers', 'limits'], 'do-not-call'),
  search: text(),
  // The kind and ID of the tenancy whose rules are shown, such as `account/ID`; empty for the viewer's own
  scope: text(),
  // Its name, once the user has chosen one
  scopeName: unwritten(''),
});
type Filters = typeof screenFilters.initial;

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

type RulesHeadProps = Pick<TabProps, 'tabs' | 'own' | 'onChange'> & { kinds?: readonly ProtectionScope[]; chosen: Tenancy };

export function RulesHead({ tabs, own, kinds = protectionScopes, chosen, onChange }: RulesHeadProps) {
  return (
    <>
      {tabs}
      <div class="toolbar">
        <ChooseTenancy
          title="Choose whose rules to show"
          {...{ own, kinds, chosen }}
          onChoose={(tenancy) => onChange(toFilters(own, tenancy))}
        />
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
