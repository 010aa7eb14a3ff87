import type { Command } from 'commander';
import { isExpired } from '#contract/expiry.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text.ts';
import { digestOf, listAllApiKeys, revokeVisible } from '../domain/api-keys.ts';
import type { ApiKey } from '../domain/model.ts';
import { Problem } from '../domain/problem.ts';
import type { AdminContext, Runner } from './context.ts';
import { withExamples } from './help.ts';
import { shortName, table } from './table.ts';
import { findUser } from './user.ts';

/** The operator has no scope. */
const everyKey = { kind: 'all' } as const;

export function keyCommands(program: Command, { withDatabase }: Runner): void {
  const key = program.command('key').description('API keys of all users');
  const list = key
    .command('list')
    .option('--search <text>', 'only keys whose name contains this, in whatever case and with whatever accents')
    .option('--owner <email>', 'only keys of this user')
    .option('--all', `all of them, instead of the newest ${limits.listedApiKeys}`)
    .description('list the newest keys');
  withExamples(list, 'key list', 'key list --owner ada@example.com --search crm', '--json key list --all').action(withDatabase(runList));
  const revoke = key
    .command('revoke')
    .argument('[id]')
    .option('--value-from-stdin', 'revoke the key whose value is on standard input, such as a leaked one')
    .option('--cancel-queued-calls', 'also cancel the queued calls that the key has placed')
    .description('revoke a key: its next request is refused, and nothing undoes it');
  const examples = ['key revoke 01a20138-3d19-7da7-9907-3a9fb48fa32a --cancel-queued-calls', 'key revoke --value-from-stdin < leaked.txt'];
  withExamples(revoke, ...examples)
    // Before the database is opened.
    .hook('preAction', () => {
      const isOne = (revoke.args.length === 0) !== (revoke.opts<RevokeOptions>().valueFromStdin === undefined);
      if (!isOne) revoke.error("error: give a key's id, or --value-from-stdin, and only one of them");
    })
    .action(withDatabase(runRevoke));
}

type ListOptions = { search?: string; owner?: string; all?: true };

async function runList({ ports, output }: AdminContext, { search = '', owner, all }: ListOptions): Promise<void> {
  const limit = all ? null : limits.listedApiKeys;
  const visibility = owner === undefined ? everyKey : { kind: 'own' as const, userId: (await findUser(ports, owner)).id };
  const { apiKeys, total } = await listAllApiKeys(ports, visibility, search, limit);
  const now = ports.clock.now().toMillis();
  const text = table(
    ['ID', 'NAME', 'OWNER', 'CREATED', 'LAST USED', 'EXPIRY'],
    apiKeys.map((key) => rowOf(key, now)),
  );
  output.answer(
    { apiKeys: apiKeys.map((key) => keyJson(key, now)), total, limit },
    total > apiKeys.length ? `${text}\nNewest ${apiKeys.length} of ${total}. See them all: key list --all` : text,
  );
}

type RevokeOptions = { valueFromStdin?: true; cancelQueuedCalls?: true };

async function runRevoke(context: AdminContext, id: string | undefined, options: RevokeOptions): Promise<void> {
  const { ports, actor, output } = context;
  const key = await revokeVisible(ports, everyKey, actor, id ?? (await idOfValue(context)), options.cancelQueuedCalls ?? false);
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
  return [key.id, shortName(key.name), shortName(key.creator.name), timestamp(key.createdAt), lastUsed, expiry];
}

function hasExpired({ expiresAt }: ApiKey, now: number): boolean {
  return isExpired(expiresAt?.toMillis() ?? null, now);
}
