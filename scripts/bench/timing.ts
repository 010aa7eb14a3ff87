import { Agent, request } from 'node:http';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import { ask, createKey, type DatabaseKind, openStage, type Stage, signIn } from './environment.ts';
import { computeSpread } from './spread.ts';

/**
 * Checks whether the time that a refusal takes reveals why a key was refused. Sends keys of every kind in random order, and compares the
 * times. A malformed key is refused faster, because it isn't looked up. That's fine, because the format isn't secret. The other kinds must
 * take the same time.
 */
export async function compareTimes(kind: DatabaseKind, requests: number): Promise<string> {
  const stage = await openStage(kind);
  const lines = await timeEach(stage, await refusedKeys(stage), requests);
  await stage.close();
  return `${kind}\n${lines}\n`;
}

/** Creates keys that are refused, by reason. */
async function refusedKeys({ core, ports, storage, tenants, unknown, revoked }: Stage): Promise<[string, string][]> {
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
  return [
    ['unknown', unknown[0] ?? ''],
    ['revoked', revoked[0] ?? ''],
    ['expired', expired.keyValue],
    ['of a deleted user', orphaned.keyValue],
    ['from elsewhere', elsewhere.keyValue],
    ['malformed', 'svc_sk_live_nonsense'],
  ];
}

async function timeEach({ core, path }: Stage, keys: readonly [string, string][], requests: number): Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const timesByReason = new Map(keys.map(([reason]) => [reason, [] as number[]]));
  for (let n = 0; n < requests * keys.length; n++) {
    const [reason = '', key = ''] = keys[Math.floor(Math.random() * keys.length)] ?? [];
    const time = await measureTime(core.url + path, key, agent);
    // The first requests are only a warm-up.
    if (n > requests) timesByReason.get(reason)?.push(time);
  }
  agent.destroy();
  const reference = timesByReason.get('unknown') ?? [];
  const lines = [...timesByReason].map(([reason, times]) => {
    const median = `${(computeSpread(times).median * 1_000).toFixed(1)} µs`;
    return `  ${reason.padEnd(18)} ${median}, z ${rankTest(times, reference).toFixed(1)} compared with an unknown key`;
  });
  return lines.join('\n');
}

function measureTime(url: string, key: string, agent: Agent): Promise<number> {
  const from = performance.now();
  return new Promise((resolve, reject) => {
    const pending = request(url, { method: 'POST', agent, headers: { 'X-API-Key': key, 'Content-Type': 'application/json' } }, (answer) => {
      answer.resume().once('end', () => resolve(performance.now() - from));
    });
    pending.once('error', reject).end('{"contact":{"phone":"+493012345678"}}');
  });
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
