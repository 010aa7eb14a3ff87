import { createHmac, timingSafeEqual } from 'node:crypto';
import { readableEmail } from '#contract/text/email.ts';

/** RFC 6238 with its defaults, because many apps support nothing else: SHA-1, six digits, 30 seconds. RFC 4226 §4 recommends 160 bits. */
export const totp = { secretBytes: 20, digits: 6, stepMs: 30_000 };

/** How many steps the phone's clock may differ, or a code may take to arrive (RFC 6238 §5.2). */
const tolerance = 1;

/** Returns the code of a time step (RFC 4226 §5.3). */
export function codeAt(secret: Uint8Array, step: number, digits = totp.digits): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  const offset = digest.readUInt8(digest.length - 1) & 0xf;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0');
}

/** @param now in ms. @returns the time step that the code belongs to; null if it's neither the current one nor next to it */
export function matchingStep(secret: Uint8Array, code: string, now: number): number | null {
  const current = Math.floor(now / totp.stepMs);
  const entered = Buffer.from(code);
  let match: number | null = null;
  for (let step = current - tolerance; step <= current + tolerance; step++) {
    const expected = Buffer.from(codeAt(secret, step));
    if (entered.length === expected.length && timingSafeEqual(entered, expected)) match = step;
  }
  return match;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Encodes bytes as base32 (RFC 4648 §6), as authenticator apps expect. The number of bytes must be a multiple of five. */
export function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet.charAt(Number.parseInt(five, 2))).join('');
}

/** Returns the address that an app reads from a QR code. @param host tells the servers apart that a person uses */
export function otpauthUri(secret: string, email: string, host: string): string {
  // A colon would separate the issuer from the address.
  const issuer = encodeURIComponent(`Callkey ${host.replaceAll(':', ' ')}`.trim());
  return `otpauth://totp/${issuer}:${encodeURIComponent(readableEmail(email))}?secret=${secret}&issuer=${issuer}`;
}
