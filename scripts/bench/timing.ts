import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import { ask, createKey, openStage, type Stage, signIn } from './environment.ts';
import type { DatabaseKind } from './processes.ts';
import { computeSpread, timed } from './spread.ts';
import { openConnection } from './tail.ts';

/**
 * Checks whether the time that a refusal takes reveals why a key was refused. Sends keys of every kind in random order, and compares the
 * times. A malformed key is refused faster, because it isn't looked up. That's fine, because the format isn't secret. The other kinds must
 * take the same time.
 */
export async function compareTimes(kind: DatabaseKind, requests: number): Promise<string> {
  const stage = await openStage(kind);
  const keys = Object.entries(await refusedKeys(stage)).map(([reason, key]) => ({ reason, key, times: [] as number[] }));
  const connection = await openConnection(stage);
  for (let n = 0; n < requests * keys.length; n++) {
    const chosen = keys[Math.floor(Math.random() * keys.length)];
    const { ms } = await timed(() => connection.place(chosen?.key ?? ''));
    // The first requests are only a warm-up.
    if (n > requests) chosen?.times.push(ms);
  }
  connection.close();
  await stage.close();
  const lines = keys.map(({ reason, times }) => {
    const median = `${(computeSpread(times).median * 1_000).toFixed(1)} µs`;
    return `  ${reason.padEnd(18)} ${median}, z ${rankTest(times, keys[0]?.times ?? []).toFixed(1)} compared with an unknown key`;
  });
  return `${[kind, ...lines].join('\n')}\n`;
}

/** Returns keys that are refused, by reason. The first one is unknown. */
async function refusedKeys({ core, ports, storage, tenants, unknown, revoked }: Stage): Promise<Record<string, string | undefined>> {
  const cookie = await signIn(core, 'oda');
  const elsewhere = await createKey(core, cookie);
  await ask(core, 'PATCH', `/console/api-keys/${elsewhere.id}`, cookie, { addresses: ['192.0.2.0/24'] });
  const expired = await createKey(core, cookie);
  const { write } = storage.database;
  await write('api_keys')
    .where({ id: expired.id })
    .update({ expires_at: instant(1) });
  const orphaned = await createKey(core, await signIn(core, 'tom'));
  await deleteUser(ports, operator, tenants.users.teammate, false);
  return {
    ...{ unknown: unknown[0], revoked: revoked[0], expired: expired.keyValue },
    ...{ 'of a deleted user': orphaned.keyValue, 'from elsewhere': elsewhere.keyValue, malformed: 'svc_sk_live_nonsense' },
  };
}

/** Returns how many standard deviations the ranks are apart (Mann–Whitney U test). Above about 3, the times differ. */
function rankTest(a: readonly number[], b: readonly number[]): number {
  const all = [...a.map((value) => ({ value, isInA: true })), ...b.map((value) => ({ value, isInA: false }))];
  all.sort((first, second) => first.value - second.value);
  const ranks = all.reduce((sum, { isInA }, index) => (isInA ? sum + index + 1 : sum), 0);
  const [n, m] = [a.length, b.length];
  const expected = (n * (n + m + 1)) / 2;
  return (ranks - expected) / Math.sqrt((n * m * (n + m + 1)) / 12);
}
