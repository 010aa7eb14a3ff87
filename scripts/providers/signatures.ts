// Verifies providers' signatures. The tests check this against the examples that providers publish: test/dialer/signatures.test.ts
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Twilio signs the address, followed by each field and its value, sorted by field name: https://www.twilio.com/docs/usage/security */
export function isSignedByTwilio(token: string, signature: unknown, url: string, fields: URLSearchParams): boolean {
  const signed =
    url +
    [...fields]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flat()
      .join('');
  return isEqual(createHmac('sha1', token).update(signed).digest(), Buffer.from(String(signature), 'base64'));
}

/** In ms. */
const window = 300_000;

/** The signature is `v=`, milliseconds, `,d=`, and the HMAC-SHA256 of the body and the milliseconds, in hexadecimal. */
export function isSignedByRetell(key: string, signature: unknown, body: string, now: number): boolean {
  const [, time = '', digest = ''] = /^v=(\d+),d=([0-9a-f]{64})$/.exec(String(signature)) ?? [];
  const expected = createHmac('sha256', key)
    .update(body + time)
    .digest();
  return Math.abs(now - Number(time)) < window && isEqual(expected, Buffer.from(digest, 'hex'));
}

function isEqual(expected: Buffer, actual: Buffer): boolean {
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
