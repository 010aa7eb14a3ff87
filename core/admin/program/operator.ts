import { userInfo } from 'node:os';
import { operator } from '../../domain/audit/audit.ts';
import type { Actor } from '../../domain/model.ts';

/** Identifies the operator by the system user: `local:callkey`, or `local:ada (as callkey)` with sudo. */
export function toOperator(environment: Readonly<Record<string, string | undefined>>): Actor {
  const name = systemUser();
  const sudoer = environment['SUDO_USER'];
  const who = sudoer === undefined || sudoer === '' || sudoer === name ? name : `${sudoer} (as ${name})`;
  return { ...operator, address: `${operator.address}:${who}` };
}

/** Returns the system user's name, or the ID, because a container may run as a user without a name. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
