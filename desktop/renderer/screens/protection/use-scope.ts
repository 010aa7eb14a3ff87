import { type ProtectionView, readScope } from './protection-view.ts';
import type { NamedScope } from './scope-select.tsx';

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
