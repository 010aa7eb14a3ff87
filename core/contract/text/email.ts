/**
 * Writes the domain of an email address in ASCII, as browsers do before they send an address (UTS #46), so that all spellings of an
 * address are the same user. Returns the address unchanged if its domain isn't valid.
 */
export function canonicalEmail(email: string): string {
  const [, local = '', domain = ''] = /^([^@\uFF20]*)[@\uFF20]([^@\uFF20]*)$/.exec(email) ?? [];
  // Only now is a dot at the end always the same character.
  const canonical = canonicalDomain(domain)?.replace(/\.$/, '');
  return canonical === undefined ? email : `${local}@${canonical}`;
}

export function hasCanonicalDomain(email: string): boolean {
  const domain = email.slice(email.indexOf('@') + 1);
  return canonicalDomain(domain) === domain && !/^\.|\.\.|\.$/.test(domain);
}

/** @returns null if it isn't a domain */
export function canonicalDomain(domain: string): string | null {
  const lower = domain.toLowerCase();
  if (/^[!-?A-~]*$/.test(lower) && !lower.includes('xn--')) return lower;
  // URLs allow more than a domain here, and drop invisible characters.
  if (/[\s/:?#@[\]\\%]|\p{Default_Ignorable_Code_Point}/u.test(domain)) return null;
  return URL.parse(`https://${domain}`)?.hostname ?? null;
}

/** Domains whose letters can't be mistaken for those of another alphabet. Others are shown in ASCII, as in browsers. */
const distinct = [
  /^[\p{Script=Latin}\d.-]+$/u,
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}ー\da-z.-]+$/u,
  ...['Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Thai', 'Devanagari', 'Armenian', 'Georgian'].map(
    (script) => new RegExp(`^[\\p{Script=${script}}\\p{M}\\d.-]+$`, 'u'),
  ),
];

/** Writes a canonical address for people, with the letters of its domain, if they can't be mistaken for others. */
export function readableEmail(email: string): string {
  const at = email.indexOf('@') + 1;
  const domain = email.slice(at);
  if (!domain.includes('xn--')) return email;
  const readable = domain
    .split('.')
    .map((label) => (label.startsWith('xn--') ? decodePunycode(label.slice(4)) : label))
    .join('.');
  const isDistinct = distinct.some((letters) => letters.test(readable)) && !/[\u0131\u0251\u0261]/.test(readable);
  return isDistinct && canonicalDomain(readable) === domain ? email.slice(0, at) + readable : email;
}

/** Decodes a label (RFC 3492 §6.2). The result of an invalid one doesn't matter, because it isn't the same in ASCII again. */
function decodePunycode(label: string): string {
  const end = label.lastIndexOf('-');
  const output = [...label.slice(0, Math.max(0, end))].map((letter) => letter.charCodeAt(0));
  let [code, index, bias] = [128, 0, 72];
  for (let position = end + 1; position < label.length; ) {
    const start = index;
    for (let weight = 1, k = 36; position < label.length; k += 36) {
      const digit = Number.parseInt(label.charAt(position++), 36);
      // In base 36, digits come before letters. In Punycode, they come after them.
      const value = digit < 10 ? digit + 26 : digit - 10;
      const threshold = Math.min(26, Math.max(1, k - bias));
      index += value * weight;
      if (value < threshold) break;
      weight *= 36 - threshold;
    }
    const size = output.length + 1;
    let delta = Math.floor((index - start) / (start === 0 ? 700 : 2));
    delta += Math.floor(delta / size);
    let k = 0;
    for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
    bias = k + Math.floor((36 * delta) / (delta + 38));
    code += Math.floor(index / size);
    index %= size;
    if (!(code <= 0x10ffff)) return label;
    output.splice(index++, 0, code);
  }
  return String.fromCodePoint(...output);
}
