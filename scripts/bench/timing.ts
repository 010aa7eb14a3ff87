// Can the time of a refusal tell why a key was refused? Asks with keys of every kind in a random order, one at a time, and compares:
//   node_modules/.bin/node scripts/bench/timing.ts --requests 5000
// A malformed key is refused without a look-up, and so faster; its form is no secret. The other kinds must not differ.
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { cleanUp } from '../../test/support/clean-up.ts';
import { databaseKinds } from '../../test/support/databases.ts';
import { createKey, signIn } from '../../test/support/tenants.ts';
import { openStage, type Stage } from './environment.ts';
import { spreadOf } from './spread.ts';

const { values } = parseArgs({ options: { requests: { type: 'string', default: '5000' } } });
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

try {
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    process.stdout.write(`${kind}\n${await compare(stage, Number(values.requests))}\n`);
    await stage.close();
  }
} finally {
  agent.destroy();
  await cleanUp();
}

/** Keys that are refused, by the reason. */
async function refused({ core, direct, tenants, unknown, revoked }: Stage): Promise<Map<string, string>> {
  const expired = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
  await direct.storage.database.write('api_keys').where({ id: expired.id }).update({ expires_at: 1 });
  const orphaned = await createKey(core.url, await signIn(core.url, 'tom@example.com'));
  await deleteUser(direct.ports, operator, tenants.users.teammate, false);
  return new Map([
    ['unknown', unknown[0] ?? ''],
    ['revoked', revoked[0] ?? ''],
    ['expired', expired.keyValue],
    ['of a deleted user', orphaned.keyValue],
    ['malformed', 'svc_sk_live_nonsense'],
  ]);
}

async function compare(stage: Stage, requests: number): Promise<string> {
  const keys = [...(await refused(stage))];
  const times = new Map(keys.map(([reason]) => [reason, [] as number[]]));
  for (let n = 0; n < requests * keys.length; n++) {
    const [reason = '', key = ''] = keys[Math.floor(Math.random() * keys.length)] ?? [];
    const taken = await timeOf(stage.core.url + stage.path, key);
    // The first ones warm things up.
    if (n > requests) times.get(reason)?.push(taken);
  }
  const reference = times.get('unknown') ?? [];
  const lines = [...times].map(([reason, taken]) => {
    const { median } = spreadOf(taken);
    return `  ${reason.padEnd(18)} ${(median * 1_000).toFixed(1)} µs, z ${rankTest(taken, reference).toFixed(1)} against unknown`;
  });
  return lines.join('\n');
}

function timeOf(url: string, key: string): Promise<number> {
  const from = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'POST', agent, headers: { 'X-API-Key': key, 'Content-Type': 'application/json' } }, (answer) => {
      answer.resume().once('end', () => resolve(performance.now() - from));
    });
    asked.once('error', reject).end('{"contact":{"phone":"+493012345678"}}');
  });
}

/** Mann and Whitney's test: how many standard deviations apart the ranks are. Beyond 3 or so, they differ. */
function rankTest(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((value) => ({ value, mine: true })), ...other.map((value) => ({ value, mine: false }))];
  all.sort((first, second) => first.value - second.value);
  const ranks = all.reduce((sum, { mine }, index) => (mine ? sum + index + 1 : sum), 0);
  const [n, m] = [one.length, other.length];
  const expected = (n * (n + m + 1)) / 2;
  return (ranks - expected) / Math.sqrt((n * m * (n + m + 1)) / 12);
}
