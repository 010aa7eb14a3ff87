import type { Result } from '../../../ipc.ts';
import { isConflict } from '../../state/format/failure-text.ts';
import type { Resource } from '../../state/loading/resource.ts';

/** Saves rules. If someone else has changed them in the meantime, loads these changes, so that the form can warn about them. */
export async function saveRules<View>(resource: Resource<View>, save: () => Promise<Result<View>>): Promise<Result<View>> {
  const result = await save();
  if (!result.ok && isConflict(result.failure)) await resource.refresh();
  return result;
}
