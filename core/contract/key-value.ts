import { crc32 } from 'node:zlib';

/**
 * A key value consists of the prefix, 43 base62 characters of secret and 6 base62 characters of checksum. The parts are separated by
 * position, because the prefix itself contains underscores.
 */
export const keyValuePrefix = 'svc_sk_live_';
const secretLength = 43;
const checksumLength = 6;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const form = new RegExp(`^${keyValuePrefix}[0-9A-Za-z]{${secretLength + checksumLength}}$`);

/** A key value or the start of one. */
const keyValueLookalike = /svc_sk_live_[0-9A-Za-z]*/g;

/** Removes key values from a text, such as a mistyped argument, a URL or a server's response. Keeps a bare prefix. */
export function redactKeyValues(text: string): string {
  return text.replace(keyValueLookalike, (match) => (match === keyValuePrefix ? match : `${keyValuePrefix}[redacted]`));
}

/**
 * Discards bytes of 248 and above, because 248 is the largest multiple of 62 that fits in a byte. So every character is equally likely, and
 * the secret has 43 × log2(62) = 256.03 bits.
 *
 * @param randomBytes a cryptographic source
 */
export function makeKeyValue(randomBytes: (size: number) => Uint8Array): string {
  let secret = '';
  while (secret.length < secretLength) {
    for (const byte of randomBytes(secretLength)) {
      if (byte < 248 && secret.length < secretLength) secret += alphabet[byte % 62];
    }
  }
  const body = keyValuePrefix + secret;
  return body + checksum(body);
}

/** Whether a text has the format of a key value and a correct checksum. The key may still not exist. */
export function isKeyValue(text: string): boolean {
  return form.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength);
}

/** What may be between the characters of a key that was copied: line breaks, invisible characters, or backslashes before underscores. */
const between = '[^0-9A-Za-z_]*';
const characters = [...keyValuePrefix, ...Array.from({ length: secretLength + checksumLength }, () => '[0-9A-Za-z]')];
/** Looks ahead, so that a key is found even if it follows a part of another one. */
const spreadForm = new RegExp(`(?=(${characters.join(between)})(?![0-9A-Za-z]))`, 'g');

/** Finds the key values in a text that was pasted or read, such as a line of a file, a command or an email. Returns each once. */
export function findKeyValues(text: string): string[] {
  return [...new Set(findLookalikes(text).filter(isKeyValue))];
}

/** Whether a text has something with the length and characters of a key value, but a wrong checksum. */
export function hasMistypedKey(text: string): boolean {
  return findLookalikes(text).some((value) => !isKeyValue(value));
}

function findLookalikes(text: string): string[] {
  const matches = text.normalize('NFKC').replace(/%5f/gi, '_').matchAll(spreadForm);
  return Array.from(matches, ([, match = '']) => match.replace(/[^0-9A-Za-z_]/g, ''));
}

/** Returns the CRC-32 (ISO-HDLC, as in zip) of ASCII text, as six base62 digits, most significant first. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < checksumLength; place++) {
    digits = alphabet.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
