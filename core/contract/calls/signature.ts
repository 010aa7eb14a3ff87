import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto';

// Standard Webhooks 1.0.0 (github.com/standard-webhooks/standard-webhooks), which has libraries in nine languages for verifying signatures.

/** The message's ID, its Unix time, and `v1,` with the base64 HMAC-SHA256 of "id.timestamp.body". Several signatures are separated by spaces. */
export const signatureHeaders = { id: 'webhook-id', timestamp: 'webhook-timestamp', signature: 'webhook-signature' } as const;
export type SignatureHeaders = Record<(typeof signatureHeaders)[keyof typeof signatureHeaders], string>;

/** The maximum difference between a message's time and now, in seconds. */
const signatureWindow = 300;

const secretPrefix = 'whsec_';
const secretBytes = { min: 24, generated: 32, max: 64 };
const base64Form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Whether a text is `whsec_` followed by 24 to 64 bytes in base64. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(secretPrefix) || !base64Form.test(text.slice(secretPrefix.length))) return false;
  const { length } = toKey(text);
  return length >= secretBytes.min && length <= secretBytes.max;
}

/** @param randomBytes a cryptographic source */
export function makeSigningSecret(randomBytes: (size: number) => Uint8Array): string {
  return secretPrefix + Buffer.from(randomBytes(secretBytes.generated)).toString('base64');
}

/** @param seconds Unix time */
export function sign(id: string, body: Uint8Array | string, secret: string, seconds: number): SignatureHeaders {
  const signature = `v1,${startHash(id, String(seconds), secret).update(body).digest('base64')}`;
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signature };
}

/** Returns a header's value, or an empty string if it's missing. */
type ReadHeader = (name: keyof SignatureHeaders) => string;

/**
 * Checks a body while it arrives, because it may be too long to keep. With several secrets, one can be replaced without interruption.
 *
 * @param seconds the current Unix time
 */
export function checkSignature(header: ReadHeader, secrets: readonly string[], seconds: number) {
  const [id, timestamp] = [header(signatureHeaders.id), header(signatureHeaders.timestamp)];
  const isRecent = id !== '' && /^\d{1,12}$/.test(timestamp) && Math.abs(seconds - Number(timestamp)) <= signatureWindow;
  const hashes = isRecent ? secrets.map((secret) => startHash(id, timestamp, secret)) : [];
  return {
    update(chunk: Uint8Array): void {
      for (const hash of hashes) hash.update(chunk);
    },
    /** Whether exactly the chunks so far were signed. Call it once, at the end. */
    isSigned(): boolean {
      const signatures = header(signatureHeaders.signature)
        .split(' ')
        .filter((signature) => signature.startsWith('v1,'));
      const digests = signatures.map((signature) => Buffer.from(signature.slice('v1,'.length), 'base64'));
      return hashes.some((hash) => {
        const right = hash.digest();
        return digests.some((digest) => digest.length === right.length && timingSafeEqual(digest, right));
      });
    },
  };
}

export function isSigned(header: ReadHeader, body: Uint8Array, secrets: readonly string[], seconds: number): boolean {
  const check = checkSignature(header, secrets, seconds);
  check.update(body);
  return check.isSigned();
}

function startHash(id: string, timestamp: string, secret: string): Hmac {
  return createHmac('sha256', toKey(secret)).update(`${id}.${timestamp}.`);
}

function toKey(secret: string): Buffer {
  return Buffer.from(secret.slice(secretPrefix.length), 'base64');
}
