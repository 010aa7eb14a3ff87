import type { Command } from 'commander';
import { isExpired } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text.ts';
import { revokeVisible } from '../domain/api-keys.ts';
import { operator } from '../domain/audit.ts';
import type { ApiKey } from '../domain/model.ts';
import type { AdminContext, Runner } from './context.ts';
import { table } from './output.ts';

export function keyCommands(program: Command, { withDatabase }: Runner): void {
  const key = program.command('key').description('API keys of all users');
  key.command('list').description('list the newest keys').action(withDatabase(runList));
  key
    .command('revoke')
    .argument('<id>')
    .option('--cancel-queued-calls', 'also cancel the queued calls that the key has placed')
    .description('revoke a key: its next request is refused, and nothing undoes it')
    .action(withDatabase(runRevoke));
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const limit = limits.listedApiKeys;
  const { apiKeys, total } = await ports.stores.apiKeys.list({ kind: 'all' }, limit);
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

async function runRevoke({ ports, output }: AdminContext, id: string, options: { cancelQueuedCalls?: true }): Promise<void> {
  const key = await revokeVisible(ports, { kind: 'all' }, operator, id, options.cancelQueuedCalls ?? false);
  output.answer({ apiKey: { id: key.id, name: key.name } }, `Revoked the API key ${key.name} of ${key.creator.name}.`);
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
