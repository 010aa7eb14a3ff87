import { createHmac, timingSafeEqual } from 'node:crypto';

/** Carries the signature of hand-offs and of outcomes: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "<t>." and the raw body>`. */
export const signatureHeader = 'Callkey-Signature';

/** How far a signature's time may be from now, in seconds. */
const signatureWindow = 300;

/** @param seconds Unix time */
export function sign(body: Uint8Array | string, secret: string, seconds: number): string {
  return `t=${seconds},v1=${digest(body, secret, seconds).toString('hex')}`;
}

/**
 * Whether one of the secrets has signed this very body, not long ago. Several secrets let one be replaced without a gap.
 *
 * @param seconds the Unix time now
 */
export function isSigned(header: string, body: Uint8Array, secrets: readonly string[], seconds: number): boolean {
  const match = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header);
  const time = Number(match?.[1]);
  if (!match || Math.abs(seconds - time) > signatureWindow) return false;
  const given = Buffer.from(match[2] ?? '', 'hex');
  return secrets.some((secret) => timingSafeEqual(digest(body, secret, time), given));
}

function digest(body: Uint8Array | string, secret: string, seconds: number): Buffer {
  return createHmac('sha256', secret).update(`${seconds}.`).update(body).digest();
}
