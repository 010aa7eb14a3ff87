import { useState } from 'preact/hooks';
import type { ProtectionView, Scope } from './protection-view.ts';
import { readScope } from './protection-view.ts';
import type { NamedScope } from './scope-select.tsx';

/** Returns the scope in the address, or the viewer's own. Its name is known once the user has chosen it. */
export function useScope(home: NamedScope, view: ProtectionView, onView: (changes: Partial<ProtectionView>) => void) {
  const [names, setNames] = useState<Readonly<Record<string, string>>>({ [home.id]: home.name });
  const written: Scope = readScope(view.scope) ?? home;
  return {
    scope: { ...written, name: names[written.id] ?? '' },
    choose: ({ kind, id, name }: NamedScope) => {
      setNames({ ...names, [id]: name });
      onView({ scope: id === home.id ? '' : `${kind}/${id}` });
    },
  };
}
