import { type Command, Option } from 'commander';
import { newPasswordSchema, type UserType, userTypes } from '#contract/console.ts';
import { emailSchema, normalEmail, timestamp } from '#contract/text.ts';
import { operator } from '../domain/audit.ts';
import type { ListedUser, User } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { createUser, deleteUser, oneTimePasswordNote, resetPassword } from '../domain/users.ts';
import type { AdminContext, Runner } from './context.ts';
import { nameSchema, parseInput } from './input.ts';
import { type Output, table } from './output.ts';

export function userCommands(program: Command, { withDatabase }: Runner): void {
  const user = program.command('user').description('users, who sign in to the console');
  user
    .command('create')
    .alias('add')
    .argument('<email>')
    .requiredOption('--name <name>', 'the name that others see')
    .addOption(new Option('--type <type>', 'what the user may see and do').choices(userTypes).makeOptionMandatory())
    .option('--account <id>', 'the account of an account user, or the one account that a partner user is tied to')
    .option('--partner <id>', 'the partner of a partner user')
    .option(...passwordOption)
    .description('create a user')
    .action(withDatabase(runCreate, 'fill'));
  user.command('list').description('list all users').action(withDatabase(runList));
  user
    .command('password')
    .argument('<email>')
    .option(...passwordOption)
    .description('give a user a new password, and end their sessions')
    .action(withDatabase(runPassword));
  user
    .command('delete')
    .argument('<email>')
    .option('--cancel-queued-calls', "also cancel the queued calls that the user's API keys have placed")
    .description('delete a user, with their API keys and sessions')
    .action(withDatabase(runDelete));
}

const passwordOption = ['--password-stdin', 'read the password from standard input, instead of making a one-time password'] as const;

type PasswordOptions = { passwordStdin?: true };
type CreateOptions = PasswordOptions & { name: string; type: UserType; account?: string; partner?: string };

async function runCreate(context: AdminContext, email: string, options: CreateOptions): Promise<void> {
  const input = {
    email: parseInput(emailSchema, email, 'EMAIL'),
    name: parseInput(nameSchema, options.name, '--name'),
    userType: options.type,
    accountId: options.account ?? null,
    partnerId: options.partner ?? null,
  };
  const { user, password } = await createUser(context.ports, operator, input, await readPassword(context, options));
  answerWithPassword(context.output, user, password, `Created the ${user.userType} user ${user.email}: ${user.id}`);
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const users = await ports.stores.users.list({ kind: 'all' });
  const json = users.map((user) => ({
    ...userJson(user),
    createdAt: timestamp(user.createdAt),
    lastSignInAt: user.lastSignInAt && timestamp(user.lastSignInAt),
    apiKeys: user.apiKeys,
  }));
  output.answer({ users: json }, table(['E-MAIL', 'NAME', 'TYPE', 'OF', 'KEYS', 'LAST SIGN-IN'], users.map(rowOf)));
}

async function runPassword(context: AdminContext, email: string, options: PasswordOptions): Promise<void> {
  const user = await findUser(context.ports, email);
  const { password } = await resetPassword(context.ports, operator, user, await readPassword(context, options));
  answerWithPassword(context.output, user, password, `Gave ${user.email} a new password, and ended their sessions.`);
}

async function runDelete({ ports, output }: AdminContext, email: string, options: { cancelQueuedCalls?: true }): Promise<void> {
  const user = await findUser(ports, email);
  const deleted = await deleteUser(ports, operator, user, options.cancelQueuedCalls ?? false);
  const text = `Deleted ${user.email}, with ${deleted.apiKeys} API keys and ${deleted.sessions} sessions.`;
  output.answer({ user: userJson(user), ...deleted }, text);
}

/** @throws Problem `not-found` */
export async function findUser(ports: Ports, email: string): Promise<User> {
  // Not by the rules of a new address: a user whose address is older than a rule must still be found and deleted.
  const credentials = await ports.stores.users.findByEmail(normalEmail(email));
  if (!credentials) throw new Problem('not-found', `There is no user ${email}. See: admin user list`);
  return credentials.user;
}

export function userJson({ id, email, name, userType, account, partner }: User) {
  return { id, email, name, userType, accountId: account?.id ?? null, partnerId: partner?.id ?? null };
}

async function readPassword({ readInput }: AdminContext, { passwordStdin }: PasswordOptions): Promise<string | null> {
  if (!passwordStdin) return null;
  return parseInput(newPasswordSchema, (await readInput()).replace(/\r?\n$/, ''), 'The password on standard input');
}

function answerWithPassword(output: Output, user: User, password: string | null, text: string): void {
  if (password === null) output.answer({ user: userJson(user) }, text);
  else output.answer({ user: userJson(user), password }, `${text}\nOne-time password: ${password}\n${oneTimePasswordNote}`);
}

function rowOf({ email, name, userType, partner, account, apiKeys, lastSignInAt }: ListedUser): string[] {
  const belongsTo = [partner?.name, account?.name].filter((part) => part !== undefined).join(' / ');
  return [email, name, userType, belongsTo, String(apiKeys), lastSignInAt ? timestamp(lastSignInAt) : 'Never'];
}
