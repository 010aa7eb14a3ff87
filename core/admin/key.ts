import type { Command } from 'commander';
import { isExpired } from '#contract/expiry.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text.ts';
import { digestOf, revokeVisible } from '../domain/api-keys.ts';
import { operator } from '../domain/audit.ts';
import type { ApiKey } from '../domain/model.ts';
import { Problem } from '../domain/problem.ts';
import type { AdminContext, Runner } from './context.ts';
import { table } from './output.ts';

/** The operator has no scope. */
const everyKey = { kind: 'all' } as const;

export function keyCommands(program: Command, { withDatabase }: Runner): void {
  const key = program.command('key').description('API keys of all users');
  key.command('list').description('list the newest keys').action(withDatabase(runList));
  key
    .command('revoke')
    .argument('[id]')
    .option('--value-from-stdin', 'revoke the key whose value is on standard input, such as a leaked one')
    .option('--cancel-queued-calls', 'also cancel the queued calls that the key has placed')
    .description('revoke a key: its next request is refused, and nothing undoes it')
    .action(withDatabase(runRevoke));
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const limit = limits.listedApiKeys;
  const { apiKeys, total } = await ports.stores.apiKeys.list(everyKey, limit);
  const now = ports.clock.now().toMillis();
  const text = table(
    ['ID', 'NAME', 'OWNER', 'CREATED', 'LAST USED', 'EXPIRY'],
    apiKeys.map((key) => rowOf(key, now)),
  );
  output.answer(
    { apiKeys: apiKeys.map((key) => keyJson(key, now)), total, limit },
    total > apiKeys.length ? `${text}\nNewest ${apiKeys.length} of ${total}.` : text,
  );
}

type RevokeOptions = { valueFromStdin?: true; cancelQueuedCalls?: true };

async function runRevoke(context: AdminContext, id: string | undefined, options: RevokeOptions): Promise<void> {
  const { ports, output } = context;
  if ((id === undefined) === (options.valueFromStdin === undefined))
    throw new Problem('invalid', "Give a key's id, or --value-from-stdin, and only one of them.");
  const key = await revokeVisible(ports, everyKey, operator, id ?? (await idOfValue(context)), options.cancelQueuedCalls ?? false);
  output.answer({ apiKey: { id: key.id, name: key.name } }, `Revoked the API key ${key.name} of ${key.creator.name}.`);
}

/** @throws Problem that does not repeat what it has read */
async function idOfValue({ ports, readInput }: AdminContext): Promise<string> {
  const value = (await readInput()).trim();
  if (isKeyValue(value)) {
    const key = await ports.stores.apiKeys.findByDigest(everyKey, digestOf(value));
    if (key) return key.id;
    throw new Problem('not-found', 'This key opens nothing here: it has been revoked, or is the key of another core.');
  }
  const advice = 'Give the key alone: svc_sk_live_ and 49 letters and digits, the last of which check the others.';
  throw new Problem('invalid', `The text on standard input is no API key. ${advice}`);
}

function keyJson(key: ApiKey, now: number) {
  return {
    id: key.id,
    name: key.name,
    owner: key.creator,
    ...key.owningScope,
    createdAt: timestamp(key.createdAt),
    lastUsedAt: key.lastUsedAt && timestamp(key.lastUsedAt),
    expiresAt: key.expiresAt && timestamp(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: hasExpired(key, now),
  };
}

function rowOf(key: ApiKey, now: number): string[] {
  const lastUsed = key.lastUsedAt ? timestamp(key.lastUsedAt) : 'Never';
  const expiry = key.expiresAt ? `${hasExpired(key, now) ? 'Expired ' : ''}${timestamp(key.expiresAt)}` : 'No expiration';
  return [key.id, key.name, key.creator.name, timestamp(key.createdAt), lastUsed, expiry];
}

function hasExpired({ expiresAt }: ApiKey, now: number): boolean {
  return isExpired(expiresAt?.toMillis() ?? null, now);
}
