import { userInfo } from 'node:os';
import { operator } from '../../domain/audit/audit.ts';
import type { Actor } from '../../domain/model.ts';

/** The operator, with the name that the system knows them by: `local:callkey`, or `local:ada (as callkey)` by way of sudo. */
export function operatorOf(environment: Readonly<Record<string, string | undefined>>): Actor {
  const name = systemUser();
  const sudoer = environment['SUDO_USER'];
  const who = sudoer === undefined || sudoer === '' || sudoer === name ? name : `${sudoer} (as ${name})`;
  return { ...operator, address: `${operator.address}:${who}` };
}

/** A container may run under an id without a name. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
