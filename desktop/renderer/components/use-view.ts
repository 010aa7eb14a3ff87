import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { tenancyKey } from '../state/session.ts';
import { remember } from '../state/view.ts';

/**
 * What the user set on a screen. It survives leaving the screen; each tenancy has its own.
 *
 * @returns the view, and a function that changes parts of it
 */
export function useView<View extends object>(name: string, initial: View): [View, (changes: Partial<View>) => void] {
  const key = `${tenancyKey.value}/view/${name}`;
  const view = useMemo(() => remember(key, () => signal(initial)), [key]);
  return [
    view.value,
    (changes) => {
      view.value = { ...view.peek(), ...changes };
    },
  ];
}
