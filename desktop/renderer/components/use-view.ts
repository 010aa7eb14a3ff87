import { useMemo } from 'preact/hooks';
import { viewSignal } from '../state/loading/view.ts';
import { tenancyKey } from '../state/session.ts';

/**
 * Returns the user's settings on a screen, which are kept when the user leaves it. Each tenancy has its own.
 *
 * @returns the settings, and a function that changes some of the settings
 */
export function useView<View extends object>(name: string, initial: View): [View, (changes: Partial<View>) => void] {
  const key = tenancyKey.value;
  const view = useMemo(() => viewSignal(key, name, initial), [key, name]);
  return [
    view.value,
    (changes) => {
      view.value = { ...view.peek(), ...changes };
    },
  ];
}
