import type { Credentials, TargetUser } from '../model.ts';

/** Returns the user of these credentials, who must still have the same ones when they're changed. */
export function toTarget({ user, signInVersion }: Credentials): TargetUser {
  return { id: user.id, signInVersion };
}
