import { type Command, Option } from 'commander';
import { type UserType, userTypes } from '#contract/console/common.ts';
import { newPasswordSchema } from '#contract/console/session.ts';
import { counted } from '#contract/text/count.ts';
import { emailSchema, normalizeEmail, timestamp } from '#contract/text/text.ts';
import { userEvent } from '../domain/audit/audit.ts';
import { readableEmail } from '../domain/directory/readable-email.ts';
import {
  changeUser,
  createUser,
  deleteUser,
  disableUser,
  enableUser,
  oneTimePasswordNote,
  resetPassword,
  resetSecondFactor,
  unlinkUser,
} from '../domain/directory/users.ts';
import type { User } from '../domain/model.ts';
import type { DeletionImpact, ListedUser, Ports } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { adminCommand } from '../program.ts';
import {
  type AdminContext,
  exampleAccount,
  examplePartner,
  nameSchema,
  type Output,
  parseInput,
  type Runner,
  shortName,
  table,
  withExamples,
} from './command-line.ts';

export function userCommands(program: Command, { withDatabase }: Runner): void {
  const user = program.command('user').description('manage users, who sign in to the console');
  const create = user
    .command('create <email>')
    .alias('add')
    .requiredOption('--name <name>', 'display name')
    .addOption(typeOption().makeOptionMandatory())
    .option(...accountOption)
    .option(...partnerOption)
    .option(...passwordOption)
    .description('create a user');
  withExamples(
    create,
    'user create stan@example.com --name "Stan Staff" --type staff',
    `user create ada@example.com --name "Ada Byrne" --type account ${exampleAccount}`,
  ).action(withDatabase(runCreate, 'fill'));
  const list = user.command('list').description('list all users');
  withExamples(list, 'user list', '--json user list').action(withDatabase(runList));
  const show = user.command('show <email>').description('show a user and their API keys');
  withExamples(show, 'user show ada@example.com').action(withDatabase(runShow));
  const rename = user.command('rename <email> <name>').description("change a user's display name");
  withExamples(rename, 'user rename ada@example.com "Ada King"').action(withDatabase(onUser(runRename)));
  const move = user
    .command('move <email>')
    .addOption(typeOption())
    .option(...accountOption)
    .option(...partnerOption)
    .description("change a user's account, partner or type, and end their sessions; the access of their API keys changes immediately");
  withExamples(
    move,
    `user move ada@example.com ${exampleAccount}`,
    `user move ada@example.com --type partner ${examplePartner}`,
    'user move ada@example.com --type staff',
  ).action(withDatabase(onUser(runMove)));
  const disable = user.command('disable <email>').description('block a user and their API keys immediately, and end their sessions');
  withExamples(disable, 'user disable ada@example.com').action(withDatabase(onUser(runDisable)));
  const enable = user.command('enable <email>').description('re-enable a disabled user and their API keys');
  withExamples(enable, 'user enable ada@example.com').action(withDatabase(onUser(runEnable)));
  const password = user
    .command('password <email>')
    .option(...passwordOption)
    .description("reset a user's password and end their sessions");
  withExamples(password, 'user password ada@example.com').action(withDatabase(onUser(runPassword)));
  const secondFactor = user.command('second-factor').description("manage users' second factors at sign-in");
  const resetFactor = secondFactor
    .command('reset <email>')
    .description('remove the second factor of a user who has lost it, and end their sessions');
  withExamples(resetFactor, 'user second-factor reset ada@example.com').action(withDatabase(onUser(runResetSecondFactor)));
  const link = user.command('link').description('manage links between users and their identities at the OpenID Connect provider');
  const links = link.command('list').description('list all links');
  withExamples(links, 'user link list', '--json user link list').action(withDatabase(runListLinks));
  const unlink = link
    .command('remove <email>')
    .description('unlink a user and end their sessions; the next sign-in with the provider links the user again, by email address');
  withExamples(unlink, 'user link remove ada@example.com').action(withDatabase(onUser(runUnlink)));
  const remove = user
    .command('delete <email>')
    .option('--cancel-queued-calls', "also cancel queued calls that the user's API keys placed")
    .description('delete a user and their API keys and sessions');
  withExamples(remove, 'user delete ada@example.com --cancel-queued-calls').action(withDatabase(onUser(runDelete)));
}

/** There's no limit on rows, because someone at a terminal can stop the command. */
const unlimited = Number.MAX_SAFE_INTEGER;

const typeOption = () => new Option('--type <type>', 'what the user can see and do').choices(userTypes);
const accountOption = ['--account <id>', 'account of an account user, or the only account that a partner user can access'] as const;
const partnerOption = ['--partner <id>', 'partner of a partner user'] as const;
const passwordOption = ['--password-stdin', 'read the password from standard input instead of generating a one-time password'] as const;

type PasswordOptions = { passwordStdin?: true };
type PlaceOptions = { account?: string; partner?: string };
type CreateOptions = PasswordOptions & PlaceOptions & { name: string; type: UserType };

async function runCreate(context: AdminContext, email: string, options: CreateOptions): Promise<void> {
  const input = {
    email: parseInput(emailSchema, email, 'EMAIL'),
    name: parseInput(nameSchema, options.name, '--name'),
    userType: options.type,
    accountId: options.account ?? null,
    partnerId: options.partner ?? null,
  };
  const { user, password } = await createUser(context.ports, context.caller, input, await readPassword(context, options));
  answerWithPassword(context.output, user, password, `Created ${user.userType} user ${readableEmail(user.email)}: ${user.id}`);
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const users = await ports.stores.users.list({ kind: 'all' }, { search: '', awaySince: null }, null, unlimited);
  output.answer({ users: users.map(listedJson) }, table(['EMAIL', 'NAME', 'TYPE', 'BELONGS TO', 'KEYS', 'LAST SIGN-IN'], users.map(toRow)));
}

async function runShow({ ports, output }: AdminContext, email: string): Promise<void> {
  const { id } = await findUser(ports, email);
  const { users, apiKeys, secondFactors } = ports.stores;
  const [user, impact, active, recoveryCodes] = await Promise.all([
    users.find({ kind: 'all' }, id),
    users.deletionImpact(id, null, unlimited),
    apiKeys.countActive(id, ports.clock.now()),
    secondFactors.countRecoveryCodes(id),
  ]);
  if (!user) throw userNotFound(email);
  const shown = { user, impact, quota: { active, max: ports.maxActiveKeys }, recoveryCodes };
  output.answer({ user: shownJson(shown) }, formatUser(shown));
}

async function runRename({ ports, caller, output }: AdminContext, user: User, name: string): Promise<void> {
  const renamed = await changeUser(ports, caller, user, { name: parseInput(nameSchema, name, 'NAME') });
  output.answer({ user: userJson(renamed) }, `Renamed ${readableEmail(user.email)} to ${renamed.name}.`);
}

async function runMove({ ports, caller, output }: AdminContext, user: User, options: PlaceOptions & { type?: UserType }): Promise<void> {
  const place = { userType: options.type ?? user.userType, accountId: options.account ?? null, partnerId: options.partner ?? null };
  const moved = await changeUser(ports, caller, user, place);
  const of = belongsTo(moved);
  output.answer(
    { user: userJson(moved) },
    `Changed ${readableEmail(user.email)} to type ${moved.userType}${of === '' ? '' : ` in ${of}`}.`,
  );
}

async function runDisable({ ports, caller, output }: AdminContext, user: User): Promise<void> {
  const sessions = await disableUser(ports, caller, user);
  const text = `Disabled ${readableEmail(user.email)} and ended ${counted(sessions, 'session')}. Calls already queued with their API keys will still be dialed.`;
  output.answer({ user: userJson(user), sessions }, text);
}

async function runEnable({ ports, caller, output }: AdminContext, user: User): Promise<void> {
  await enableUser(ports, caller, user);
  output.answer({ user: userJson(user) }, `Enabled ${readableEmail(user.email)}. They can sign in, and their API keys work again.`);
}

async function runPassword(context: AdminContext, user: User, options: PasswordOptions): Promise<void> {
  const { password } = await resetPassword(context.ports, context.caller, user, await readPassword(context, options));
  answerWithPassword(context.output, user, password, `Reset the password for ${readableEmail(user.email)} and ended their sessions.`);
}

async function runListLinks({ ports, output }: AdminContext): Promise<void> {
  const links = await ports.stores.links.list();
  const json = links.map((each) => ({ ...each, email: readableEmail(each.email), linkedAt: timestamp(each.linkedAt) }));
  const rows = json.map(({ email, linkedAt, issuer, subject }) => [email, linkedAt, issuer, subject]);
  output.answer({ links: json }, table(['EMAIL', 'LINKED', 'ISSUER', 'SUBJECT'], rows));
}

async function runResetSecondFactor({ ports, caller, output }: AdminContext, user: User): Promise<void> {
  const sessions = await resetSecondFactor(ports, caller, user);
  const text = `Reset the second factor of ${readableEmail(user.email)} and ended ${counted(sessions, 'session')}. The user can now sign in with just a password.`;
  output.answer({ user: userJson(user), sessions }, text);
}

async function runUnlink({ ports, caller, output }: AdminContext, user: User): Promise<void> {
  await unlinkUser(ports, caller, user);
  output.answer({ user: userJson(user) }, `Unlinked ${readableEmail(user.email)} and ended their sessions.`);
}

async function runDelete({ ports, caller, output }: AdminContext, user: User, options: { cancelQueuedCalls?: true }): Promise<void> {
  const deleted = await deleteUser(ports, caller, user, options.cancelQueuedCalls ?? false);
  const text = `Deleted ${readableEmail(user.email)}, including ${counted(deleted.apiKeys, 'API key')} and ${counted(deleted.sessions, 'session')}.`;
  output.answer({ user: userJson(user), ...deleted }, text);
}

/** Makes a command's first argument, an email address, the user who has it. @throws Problem `not-found` */
function onUser<Input extends unknown[]>(run: (context: AdminContext, user: User, ...input: Input) => Promise<void>) {
  return async (context: AdminContext, email: string, ...input: Input) => run(context, await findUser(context.ports, email), ...input);
}

/** @throws Problem `not-found` */
export async function findUser(ports: Ports, email: string): Promise<User> {
  // Don't apply the rules for new addresses, because a user whose address is older than a rule must still be found and deleted.
  const { users } = ports.stores;
  const credentials = (await users.findByEmail(email)) ?? (await users.findByEmail(normalizeEmail(email)));
  if (!credentials) throw userNotFound(email);
  return credentials.user;
}

function userNotFound(email: string): Problem {
  return new Problem('not-found', `No user has the email address ${email}. To list users: ${adminCommand} user list`);
}

async function readPassword({ readInput }: AdminContext, { passwordStdin }: PasswordOptions): Promise<string | null> {
  if (!passwordStdin) return null;
  return parseInput(newPasswordSchema, (await readInput()).replace(/\r?\n$/, ''), 'The password on standard input');
}

function answerWithPassword(output: Output, user: User, password: string | null, text: string): void {
  if (password === null) output.answer({ user: userJson(user) }, text);
  else output.answer({ user: userJson(user), password }, `${text}\nOne-time password: ${password}\n${oneTimePasswordNote}`);
}

export function sessionCommands(program: Command, { withDatabase }: Runner): void {
  const session = program.command('session').description('manage the sessions of signed-in users');
  const revoke = session.command('revoke <email>').description("end all of a user's sessions");
  withExamples(revoke, 'session revoke ada@example.com').action(withDatabase(onUser(runRevokeSessions)));
}

async function runRevokeSessions({ ports, caller: { actor }, output }: AdminContext, user: User): Promise<void> {
  const event = userEvent(ports, actor, 'session.revoked', user);
  const sessions = await ports.stores.sessions.endAll(event);
  output.answer({ user: userJson(user), sessions }, `Ended ${counted(sessions, 'session')} for ${readableEmail(user.email)}.`);
}

function userJson({ id, email, name, userType, account, partner }: User) {
  return { id, email: readableEmail(email), name, userType, accountId: account?.id ?? null, partnerId: partner?.id ?? null };
}

function listedJson({ createdAt, lastSignInAt, disabledAt, ...user }: ListedUser) {
  return {
    ...userJson(user),
    createdAt: timestamp(createdAt),
    lastSignInAt: lastSignInAt && timestamp(lastSignInAt),
    disabledAt: disabledAt && timestamp(disabledAt),
    apiKeys: user.apiKeys,
    secondFactor: user.hasSecondFactor,
    link: user.link && { ...user.link, linkedAt: timestamp(user.link.linkedAt) },
  };
}

/** @property recoveryCodes how many the user hasn't used yet */
type ShownUser = { user: ListedUser; impact: DeletionImpact; quota: { active: number; max: number }; recoveryCodes: number };

function shownJson({ user, impact: { apiKeys, sessions }, quota: { active, max }, recoveryCodes }: ShownUser) {
  const keys = apiKeys.map(({ id, name, lastUsedAt, queuedCalls }) => ({
    ...{ id, name, queuedCalls },
    lastUsedAt: lastUsedAt && timestamp(lastUsedAt),
  }));
  return { ...listedJson(user), recoveryCodes, apiKeys: keys, activeApiKeys: active, maxActiveApiKeys: max, sessions };
}

function toRow(user: ListedUser): string[] {
  const { email, name, userType, apiKeys, lastSignInAt, disabledAt } = user;
  const lastSignIn = lastSignInAt ? timestamp(lastSignInAt) : 'Never';
  return [
    readableEmail(email),
    shortName(name),
    userType,
    belongsTo(user),
    String(apiKeys),
    disabledAt ? `${lastSignIn} (disabled)` : lastSignIn,
  ];
}

function belongsTo({ partner, account }: User): string {
  return [partner, account].flatMap((of) => (of ? [shortName(of.name)] : [])).join(' / ');
}

function formatUser({ user, impact: { apiKeys, sessions }, quota: { active, max }, recoveryCodes }: ShownUser): string {
  const facts = [
    ['ID', user.id],
    ['Name', user.name],
    ['Type', user.userType],
    ['Partner', user.partner ? `${user.partner.name} (${user.partner.id})` : ''],
    ['Account', user.account ? `${user.account.name} (${user.account.id})` : ''],
    ['Created', timestamp(user.createdAt)],
    ['Last sign-in', user.lastSignInAt ? timestamp(user.lastSignInAt) : 'Never'],
    ['Disabled', user.disabledAt ? timestamp(user.disabledAt) : ''],
    ['Second factor', user.hasSecondFactor ? `on, ${counted(recoveryCodes, 'recovery code')} left` : 'off'],
    ['Linked to', user.link ? `${user.link.subject} at ${user.link.issuer}, since ${timestamp(user.link.linkedAt)}` : ''],
    ['Sessions', String(sessions)],
    ['API keys', `${user.apiKeys}, ${active} of them active (MAX_ACTIVE_KEYS_PER_USER is ${max})`],
  ].filter(([, value]) => value !== '');
  const keys = apiKeys.map((key) => [
    key.id,
    shortName(key.name),
    key.lastUsedAt ? timestamp(key.lastUsedAt) : 'Never',
    `${key.queuedCalls}`,
  ]);
  const lines = [table(['Email', readableEmail(user.email)], facts)];
  if (keys.length > 0) lines.push('', table(['KEY', 'NAME', 'LAST USED', 'QUEUED CALLS'], keys));
  return lines.join('\n');
}
