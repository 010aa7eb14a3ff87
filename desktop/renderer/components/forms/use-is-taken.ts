import type { Named } from '#contract/console/common.ts';
import { foldText } from '#contract/text/text.ts';
import type { Result } from '../../../ipc.ts';
import { useResource } from '../loadable.tsx';
import { typingMs } from '../use-pages.ts';
import { useDebounced } from './use-debounced.ts';

/**
 * Returns whether something else already has this name, compared without case, accents and width.
 *
 * @param find searches for names
 * @param key identifies what `find` searches. Another one starts a new search
 * @param id of the thing that gets the name, if it already exists
 */
export function useIsTaken(name: string, find: (search: string) => Promise<Result<readonly Named[]>>, key = '', id = ''): boolean {
  const search = useDebounced(name.trim(), typingMs);
  const nothing = { ok: true as const, value: [] };
  const matches = useResource(async () => (search === '' ? nothing : find(search)), `${key} ${search}`).state.value.value ?? [];
  const folded = foldText(name.trim());
  return folded !== '' && matches.some((match) => match.id !== id && foldText(match.name.trim()) === folded);
}
