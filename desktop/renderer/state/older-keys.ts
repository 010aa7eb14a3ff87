import type { ApiKeysView } from '#contract/console/api-keys.ts';
import type { Result } from '../../ipc.ts';

/** Loads the newest keys, and as many older ones as were listed before. */
export async function reloadKeys(before: ApiKeysView | null): Promise<Result<ApiKeysView>> {
  const count = before?.apiKeys.length ?? 0;
  let result = await window.callkey.request('listApiKeys', {});
  while (result.ok && result.value.apiKeys.length < Math.min(count, result.value.total)) {
    const { length } = result.value.apiKeys;
    result = await withOlderKeys(result.value);
    if (result.ok && result.value.apiKeys.length <= length) break;
  }
  return result;
}

/** Loads the next older keys, and adds them to the listed ones. */
export async function withOlderKeys(listed: ApiKeysView): Promise<Result<ApiKeysView>> {
  const last = listed.apiKeys.at(-1);
  if (!last) return { ok: true, value: listed };
  const older = await window.callkey.request('listApiKeys', { olderThan: last.id });
  if (older.ok) return { ok: true, value: { ...older.value, apiKeys: [...listed.apiKeys, ...older.value.apiKeys] } };
  // If the last listed key was revoked in the meantime, continues after the key before it.
  const isGone = older.failure.kind === 'refused' && older.failure.code === 'not-found';
  return isGone ? withOlderKeys({ ...listed, apiKeys: listed.apiKeys.slice(0, -1) }) : older;
}
