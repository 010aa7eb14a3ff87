import type { Command } from 'commander';
import { auditEvent, operator, owningScopeOf, userSubject } from '../domain/audit.ts';
import type { AdminContext, Runner } from './context.ts';
import { findUser, userJson } from './user.ts';

export function sessionCommands(program: Command, { withDatabase }: Runner): void {
  const session = program.command('session').description('sessions of users who are signed in');
  session.command('revoke').argument('<email>').description("end all of a user's sessions").action(withDatabase(runRevoke));
}

async function runRevoke({ ports, output }: AdminContext, email: string): Promise<void> {
  const user = await findUser(ports, email);
  const event = auditEvent(ports, operator, 'session.revoked', userSubject(user), owningScopeOf(user));
  const sessions = await ports.stores.sessions.endAll(user.id, event);
  output.answer({ user: userJson(user), sessions }, `Ended ${sessions} sessions of ${user.email}.`);
}
