import type { Command } from 'commander';
import { counted } from '#contract/text/count.ts';
import { auditEvent, toOwningScope, userSubject } from '../domain/audit/audit.ts';
import type { AdminContext, Runner } from './program/context.ts';
import { withExamples } from './program/help.ts';
import { findUser } from './user.ts';
import { userJson } from './user-view.ts';

export function sessionCommands(program: Command, { withDatabase }: Runner): void {
  const session = program.command('session').description('manage the sessions of signed-in users');
  const revoke = session.command('revoke').argument('<email>').description("end all of a user's sessions");
  withExamples(revoke, 'session revoke ada@example.com').action(withDatabase(runRevoke));
}

async function runRevoke({ ports, actor, output }: AdminContext, email: string): Promise<void> {
  const user = await findUser(ports, email);
  const event = auditEvent(ports, actor, 'session.revoked', userSubject(user), toOwningScope(user));
  const sessions = await ports.stores.sessions.endAll(event);
  output.answer({ user: userJson(user), sessions }, `Ended ${counted(sessions, 'session')} for ${user.email}.`);
}
