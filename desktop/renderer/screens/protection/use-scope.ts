import { type ProtectionView, readScope } from './protection-view.ts';
import type { NamedScope } from './scope-select.tsx';

/** Returns the scope in the address, or the viewer's own. After a reload, its ID stands for its name. */
export function useScope(home: NamedScope, view: ProtectionView, onView: (changes: Partial<ProtectionView>) => void) {
  const written = readScope(view.scope);
  return {
    scope: written ? { ...written, name: view.scopeName || written.id } : home,
    choose: ({ kind, id, name }: NamedScope) => onView({ scope: id === home.id ? '' : `${kind}/${id}`, scopeName: name }),
  };
}
