import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { tenancyKey } from '../state/session.ts';
import { remember } from '../state/view.ts';

/**
 * The user's settings on a screen. They survive leaving the screen, and each tenancy has its own.
 *
 * @returns the settings, and a function that changes some of them
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
