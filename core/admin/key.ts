import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { changeApiKeySchema, type RevokeReason, revokeReasons } from '#contract/console/api-keys.ts';
import { isExpired } from '#contract/expiry.ts';
import { detectUtf16 } from '#contract/files/text-file.ts';
import { findKeyValues, hasMistypedKey, keyValuePrefix } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { counted } from '#contract/text/count.ts';
import { lineSchema, timestamp } from '#contract/text/text.ts';
import { validate } from '#contract/validate.ts';
import { changeApiKey, describeLimits, identifyApiKey, listApiKeys, revokeApiKey, toDigest } from '../domain/api-keys.ts';
import { readableEmail } from '../domain/directory/readable-email.ts';
import { scopeFor } from '../domain/directory/scope.ts';
import type { ApiKey } from '../domain/model.ts';
import { Problem } from '../domain/problem.ts';
import { explainDatabaseError } from '../storage/engine/errors.ts';
import {
  type AdminContext,
  exampleId,
  oneLine,
  parseInput,
  type Runner,
  shortName,
  table,
  toNumber,
  withExamples,
} from './command-line.ts';

import { findUser } from './user.ts';

export function keyCommands(program: Command, { withDatabase }: Runner): void {
  const key = program.command('key').description('manage the API keys of all users');
  const list = key
    .command('list')
    .option('--search <text>', 'only keys whose name contains this text, ignoring case and accents')
    .option('--owner <email>', 'only keys of this user')
    .option('--all', `list all keys instead of the newest ${limits.listedApiKeys}`)
    .description('list the newest keys');
  withExamples(list, 'key list', 'key list --owner ada@example.com --search crm', '--json key list --all').action(withDatabase(runList));
  const revoke = key
    .command('revoke [ids...]')
    .option('--value-from-stdin', 'read the value of the key to revoke (for example, a leaked key) from standard input')
    .option('--from <file>', 'revoke the keys whose IDs or values are in this file, one per line; - reads standard input')
    .option('--cancel-queued-calls', 'also cancel queued calls that the keys placed')
    .addOption(new Option('--reason <reason>', 'the reason, for the audit log').choices(Object.keys(revokeReasons)))
    .option('--note <text>', 'a note on the reason, in one line')
    .description('revoke keys, immediately and permanently');
  const examples = [
    `key revoke ${exampleId} --cancel-queued-calls`,
    'key revoke --value-from-stdin < leaked.txt',
    'key revoke --from leaked-keys.txt',
  ];
  withExamples(revoke, ...examples)
    // Check this before opening the database.
    .hook('preAction', () => {
      const { valueFromStdin, from } = revoke.opts<RevokeFlags>();
      const ways = [revoke.args.length > 0, valueFromStdin !== undefined, from !== undefined];
      if (revoke.opts<RevokeFlags>().reason === 'other' && revoke.opts<RevokeFlags>().note === undefined)
        revoke.error('error: explain the reason with --note');
      if (ways.filter(Boolean).length !== 1) revoke.error('error: pass only one of these: key IDs, --value-from-stdin or --from');
    })
    .action(withDatabase(runRevoke));
  const limit = key
    .command('limit <id>')
    .option('--addresses <list>', 'accept the key only from these addresses and networks, separated by commas; "any" removes this limit')
    .option('--calls-per-day <number>', 'maximum number of calls per day in the time zone of the key; "any" removes this limit')
    .description('limit a key to addresses and to a number of calls per day');
  withExamples(
    limit,
    `key limit ${exampleId} --addresses 192.0.2.0/24,2001:db8::/32`,
    `key limit ${exampleId} --calls-per-day 1000`,
    `key limit ${exampleId} --addresses any --calls-per-day any`,
  )
    .hook('preAction', () => {
      const { addresses, callsPerDay } = limit.opts<LimitOptions>();
      if (addresses === undefined && callsPerDay === undefined) limit.error('error: pass --addresses, --calls-per-day or both');
    })
    .action(withDatabase(runLimit));
}

type LimitOptions = { addresses?: string; callsPerDay?: string };

async function runLimit({ ports, caller, output }: AdminContext, id: string, options: LimitOptions): Promise<void> {
  const addresses = options.addresses === 'any' ? null : options.addresses?.split(',').map((text) => text.trim());
  const { callsPerDay: count } = options;
  const callsPerDay = count === 'any' ? null : count === undefined ? undefined : toNumber(count);
  const change = validate(changeApiKeySchema, {
    ...(addresses === undefined ? {} : { addresses }),
    ...(callsPerDay === undefined ? {} : { callsPerDay }),
  });
  if (!change.ok) throw new Problem('invalid', change.errors.map((error) => describeError(error, addresses)).join(' '));
  const key = await changeApiKey(ports, caller, id, change.data);
  output.answer(
    { apiKey: keyJson(key, ports.clock.now()) },
    `API key ${oneLine(key.name)} ${key.limits ? `is now limited: ${describeLimits(key.limits)}` : 'no longer has limits'}.`,
  );
}

/** Describes an error with the invalid value, because the list may be long. */
function describeError({ path, message }: FieldError, addresses: readonly string[] | null | undefined): string {
  const [field, index] = path.split('.');
  if (field === 'callsPerDay') return `--calls-per-day: ${message}`;
  return index === undefined ? `--addresses: ${message}` : `--addresses ${addresses?.[Number(index)]}: ${message}`;
}

type ListOptions = { search?: string; owner?: string; all?: true };

async function runList({ ports, caller, output }: AdminContext, { search = '', owner, all }: ListOptions): Promise<void> {
  const limit = all ? null : limits.listedApiKeys;
  const visibility =
    owner === undefined ? scopeFor(caller.viewer).apiKeys : { kind: 'own' as const, userId: (await findUser(ports, owner)).id };
  const { apiKeys, total } = await listApiKeys(ports, visibility, search, limit);
  const now = ports.clock.now();
  const text = table(
    ['ID', 'NAME', 'OWNER', 'CREATED', 'LAST USED', 'EXPIRY', 'LIMITS'],
    apiKeys.map((key) => toRow(key, now)),
  );
  output.answer(
    { apiKeys: apiKeys.map((key) => keyJson(key, now)), total, limit },
    total > apiKeys.length ? `${text}\nShowing the newest ${apiKeys.length} of ${total}. To list them all, add --all.` : text,
  );
}

type RevokeFlags = { valueFromStdin?: true; from?: string; cancelQueuedCalls?: boolean | 'later'; reason?: RevokeReason; note?: string };

async function runRevoke(context: AdminContext, ids: string[], options: RevokeFlags): Promise<boolean> {
  const [id] = ids;
  if (options.from !== undefined) return revokeEach(context, await readEntries(context, options.from), options);
  if (ids.length > 1) return revokeEach(context, ids.map(toEntry), options);
  const given = id === undefined ? findIdByValue(context, await context.readInput()) : findId(context, id);
  const key = await revokeOne(context, await given, options);
  context.output.answer({ apiKey: { id: key.id, name: key.name } }, `Revoked API key ${key.name}, owned by ${key.creator.name}.`);
  return true;
}

function revokeOne(
  { ports, caller }: AdminContext,
  id: string,
  { cancelQueuedCalls = false, reason, note: text }: RevokeFlags,
): Promise<ApiKey> {
  const note = text === undefined ? undefined : parseInput(lineSchema(limits.revokeNote), text, '--note');
  return revokeApiKey(ports, caller, id, cancelQueuedCalls, { reason, note });
}

/** `place` identifies the entry in messages, because they must not contain the key value. */
type Entry = { place: string; text: string };

function toEntry(text: string, n: number): Entry {
  return { place: text.includes(keyValuePrefix) ? `argument ${n + 1}` : text, text };
}

async function readEntries({ resolveFile, readInput }: AdminContext, from: string): Promise<Entry[]> {
  const list = from === '-' ? await readInput() : await readList(resolveFile(from));
  const entries = list.split(/\r\n|\n|\r/).map((line, n) => ({ place: `line ${n + 1}`, text: line.trim() }));
  return entries.filter(({ text }) => text !== '');
}

async function readList(file: string): Promise<string> {
  try {
    const bytes = await readFile(file);
    // PowerShell saves output as UTF-16. Everything else is read somehow, because leaked keys must be revoked, whatever is around them.
    return new TextDecoder(detectUtf16(bytes) ?? 'utf-8').decode(bytes);
  } catch (error) {
    throw new Problem('invalid', `Couldn't read ${file}: ${explainDatabaseError(error)?.cause ?? String(error)}.`);
  }
}

/**
 * Revokes as many keys as possible, because leaked keys after an invalid line must be revoked, too. Cancels their calls only after that,
 * because it takes seconds if the queue is long. @returns whether all were revoked, and their calls cancelled if the options say so
 */
async function revokeEach(context: AdminContext, entries: readonly Entry[], options: RevokeFlags): Promise<boolean> {
  const revoked: { id: string; name: string; owner: string }[] = [];
  const cancelQueuedCalls = options.cancelQueuedCalls ? 'later' : false;
  const failed: { place: string; message: string }[] = [];
  const handled = new Set<string>();
  for (const { place, text } of entries) {
    // Skip repeated entries, because a key value can't be found anymore once its key has been revoked.
    if (handled.has(text)) continue;
    handled.add(text);
    try {
      const id = await findId(context, text);
      if (revoked.some((key) => key.id === id)) continue;
      const { name, creator } = await revokeOne(context, id, { ...options, cancelQueuedCalls });
      revoked.push({ id, name, owner: creator.name });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      failed.push({ place, message: error.message });
    }
  }
  const callsLeft = cancelQueuedCalls === 'later' && revoked.length > 0 && !(await cancelMarked(context));
  const lines = [
    ...revoked.map(({ id, name, owner }) => `Revoked API key ${oneLine(name)} (${id}), owned by ${oneLine(owner)}.`),
    ...failed.map(({ place, message }) => `NOT REVOKED  ${place}: ${message}`),
    `Revoked ${counted(revoked.length, 'API key')}.${failed.length > 0 ? ` Not revoked: ${failed.length}.` : ''}`,
    ...(callsLeft ? ["Couldn't cancel all queued calls of these keys yet. A core retries every minute."] : []),
  ];
  const apiKeys = revoked.map(({ id, name }) => ({ id, name }));
  context.output.answer({ apiKeys, failed, ...(callsLeft ? { callsLeft } : {}) }, lines.join('\n'));
  return failed.length === 0 && !callsLeft;
}

/** Cancels the queued calls of all keys that were revoked with 'later'. @returns false if a core has to finish it */
export async function cancelMarked({ ports }: AdminContext): Promise<boolean> {
  return ports.stores.apiKeys.cancelCallsOfMarked(ports.clock.now()).then(
    () => true,
    () => false,
  );
}

/** @param text an ID or a key value */
async function findId(context: AdminContext, text: string): Promise<string> {
  return text.startsWith(keyValuePrefix) || findKeyValues(text).length > 0 ? findIdByValue(context, text) : text;
}

/** Finds the ID of a key by its value. @throws Problem with a message that doesn't repeat the value */
async function findIdByValue({ ports, caller }: AdminContext, value: string): Promise<string> {
  const [keyValue] = findKeyValues(value);
  if (keyValue !== undefined) {
    const key = await identifyApiKey(ports, caller.viewer, toDigest(keyValue));
    if (key) return key.id;
    throw new Problem('not-found', 'No active key has this value: it was revoked, or it belongs to another core.');
  }
  if (hasMistypedKey(value))
    throw new Problem('invalid', "At least one character of this API key is wrong, because its checksum doesn't match. Copy it again.");
  const advice = 'Pass only the key: svc_sk_live_ followed by 49 letters and digits, which end in a checksum.';
  throw new Problem('invalid', `This isn't an API key. ${advice}`);
}

function keyJson(key: ApiKey, now: number) {
  const { id, name, email, isDisabled } = key.creator;
  return {
    id: key.id,
    name: key.name,
    owner: { id, name, email: readableEmail(email) },
    ...(isDisabled ? { ownerDisabled: true } : {}),
    ...key.owningScope,
    createdAt: timestamp(key.createdAt),
    lastUsedAt: key.lastUsedAt && timestamp(key.lastUsedAt),
    expiresAt: key.expiresAt && timestamp(key.expiresAt),
    expiryTimeZone: key.expiryTimeZone,
    expired: isExpired(key.expiresAt, now),
    addresses: key.limits?.addresses ?? null,
    callsPerDay: key.limits?.callsPerDay ?? null,
  };
}

function toRow(key: ApiKey, now: number): string[] {
  const lastUsed = key.lastUsedAt ? timestamp(key.lastUsedAt) : 'Never';
  const expiry = key.expiresAt ? `${isExpired(key.expiresAt, now) ? 'Expired ' : ''}${timestamp(key.expiresAt)}` : 'No expiration';
  const columns = [key.id, shortName(key.name), shortName(key.creator.name), timestamp(key.createdAt), lastUsed, expiry];
  return [...columns, key.limits ? shortName(describeLimits(key.limits)) : ''];
}
