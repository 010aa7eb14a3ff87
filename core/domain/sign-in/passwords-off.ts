import type { Ports } from '../ports.ts';
import { Problem } from '../problem.ts';

/** Call this before a password is checked, changed or handed out in the console. @throws Problem `forbidden` if passwords are off */
export function requirePasswordSignIn({ passwordSignIn, provider }: Ports): void {
  if (!passwordSignIn)
    throw new Problem('forbidden', `Passwords are turned off. Sign in with ${provider?.name ?? 'your provider'} instead.`);
}
