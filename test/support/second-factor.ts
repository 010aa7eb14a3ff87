import { codeAt, totp } from '../../core/domain/sign-in/second-factor.ts';
import type { FakeClock } from './clock.ts';
import { ask, textAt } from './http.ts';
import { password } from './tenants.ts';

/** An authenticator app with one secret. `code` returns the code of the current time step, or of one that many steps later. */
export type Authenticator = { secret: string; code(stepsAhead?: number): string };

export function authenticator(secret: string, now: () => number = Date.now): Authenticator {
  const bytes = fromBase32(secret);
  return { secret, code: (stepsAhead = 0) => codeAt(bytes, Math.floor(now() / totp.stepMs) + stepsAhead) };
}

/**
 * Sets up a second factor for a signed-in user. If a clock is given, advances it by two time steps of 30 seconds, so that the app shows a
 * new code. Otherwise, the next valid code is that of the next time step.
 */
export async function enroll(url: string, cookie: string, clock?: FakeClock): Promise<{ app: Authenticator; recoveryCodes: string[] }> {
  const begun = await ask('POST', `${url}/console/second-factor`, { cookie, body: { currentPassword: password } });
  const app = authenticator(textAt(begun, 'secret'), clock?.now);
  const confirmed = await ask('POST', `${url}/console/second-factor/confirmation`, { cookie, body: { code: app.code() } });
  if (confirmed.status !== 200) throw new Error(`Setting up a second factor failed: ${confirmed.status} ${confirmed.text}`);
  clock?.advance({ seconds: 60 });
  return { app, recoveryCodes: recoveryCodesIn(confirmed.json) };
}

export function recoveryCodesIn(json: Readonly<Record<string, unknown>>): string[] {
  const { recoveryCodes } = json;
  return Array.isArray(recoveryCodes) ? recoveryCodes.map(String) : [];
}

function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
