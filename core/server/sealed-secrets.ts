import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';
import type { Randomness, SecretBox } from '../domain/ports.ts';
import { adminCommand } from '../program.ts';

/** AES-256-GCM. The nonce is random: 96 bits are enough for the few secrets that one key encrypts (NIST SP 800-38D §8.3). */
const algorithm = 'aes-256-gcm';
const sizes = { key: 32, nonce: 12, tag: 16 };

/**
 * Encrypts secrets with a key that's derived from the newest session secret, and decrypts them with the key of any session secret. A copy
 * of the database doesn't contain these keys. Each encrypted secret starts with the name of its key.
 */
export function createSecretBox(sessionSecrets: readonly string[], randomness: Randomness): SecretBox {
  const keys = sessionSecrets.map(deriveKey);
  const [newest] = keys;
  if (!newest) throw new Error('SESSION_SECRETS is empty.');
  return {
    newest: `${newest.name}.`,
    seal(owner, secret) {
      const nonce = randomness.bytes(sizes.nonce);
      const cipher = createCipheriv(algorithm, newest.bytes, nonce).setAAD(Buffer.from(owner));
      const sealed = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
      return `${newest.name}.${sealed.toString('base64url')}`;
    },
    open(owner, sealed) {
      const [name, text = ''] = sealed.split('.');
      const key = keys.find((each) => each.name === name);
      if (!key) throw new Error(missingSecret);
      const bytes = Buffer.from(text, 'base64url');
      const tagStart = bytes.length - sizes.tag;
      const decipher = createDecipheriv(algorithm, key.bytes, bytes.subarray(0, sizes.nonce)).setAAD(Buffer.from(owner));
      decipher.setAuthTag(bytes.subarray(tagStart));
      return Buffer.concat([decipher.update(bytes.subarray(sizes.nonce, tagStart)), decipher.final()]);
    },
  };
}

export const missingSecret = `a second factor was encrypted with a session secret that SESSION_SECRETS no longer contains. Add that secret at the end, or reset the second factor: ${adminCommand} user second-factor reset EMAIL`;

function deriveKey(sessionSecret: string): { name: string; bytes: Buffer } {
  const bytes = Buffer.from(hkdfSync('sha256', sessionSecret, '', 'callkey second factors', sizes.key));
  return { name: hash('sha256', bytes, 'hex').slice(0, 8), bytes };
}

/** For the admin command, which doesn't have the session secrets. */
export const noSecretBox: SecretBox = { newest: '', seal: refuseSecret, open: refuseSecret };

function refuseSecret(): never {
  throw new Error("The admin command can't read second factors.");
}
