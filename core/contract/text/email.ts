/**
 * Writes the domain in ASCII, as browsers do before they send an address (UTS #46), so that all spellings of an address are the same user.
 * Returns the address unchanged if its domain isn't valid.
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
