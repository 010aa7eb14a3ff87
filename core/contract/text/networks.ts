import { z } from 'zod';
import { limits } from '../limits.ts';

/** An IP address as 16-bit groups: two for IPv4, eight for IPv6. IPv4-mapped IPv6 (RFC 4291 §2.5.5.2) is IPv4. */
type Address = readonly number[];

/** The addresses that start with the first `prefix` bits of `groups`. */
export type Network = { groups: Address; prefix: number };

/** Parses an address in any notation, without a port. @returns null if the text isn't an address */
function parseAddress(text: string): Address | null {
  const groups = text.includes(':') ? parseIPv6(text.replace(/%.*$/, '')) : parseIPv4(text);
  return groups && isMapped(groups) ? groups.slice(6) : groups;
}

function isMapped(groups: Address): boolean {
  return groups.length === 8 && groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

function parseIPv4(text: string): Address | null {
  // Refuse leading zeros, because some programs read such a number as octal and others don't.
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(text)) return null;
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
  return Math.max(a, b, c, d) > 255 ? null : [a * 256 + b, c * 256 + d];
}

function parseIPv6(text: string): Address | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const [left, right = []] = halves.map((half, index) => parseGroups(half, index === halves.length - 1));
  if (!left || !right) return null;
  const zeros = 8 - left.length - right.length;
  // `::` stands for at least one group.
  if (halves.length === 1 ? zeros !== 0 : zeros < 1) return null;
  return [...left, ...Array.from({ length: zeros }, () => 0), ...right];
}

/** @param isLast whether the text is the end of the address, where the last group may be an IPv4 address */
function parseGroups(text: string, isLast: boolean): number[] | null {
  if (text === '') return [];
  const parts = text.split(':');
  const ipv4 = isLast && parts.at(-1)?.includes('.') ? parseIPv4(parts.pop() ?? '') : [];
  if (ipv4 === null || parts.some((part) => !/^[0-9a-f]{1,4}$/i.test(part))) return null;
  return [...parts.map((part) => Number.parseInt(part, 16)), ...ipv4];
}

/** Parses an address or a network in CIDR notation. @returns a sentence that says what's wrong with it if it's neither */
export function parseNetwork(text: string): Network | string {
  const [, address = '', bits] = /^([^/%]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const groups = parseAddress(address);
  if (!groups) return 'Must be an IP address or a network, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32.';
  const isMappedNetwork = groups.length === 2 && address.includes(':');
  const longest = groups.length * 16;
  const prefix = bits === undefined ? longest : Number(bits) - (isMappedNetwork ? 96 : 0);
  if (prefix < 0)
    return 'The prefix length of an IPv4-mapped network must be from 96 to 128. Enter the IPv4 network instead, such as 10.0.0.0/8.';
  if (prefix > longest) return `The prefix length must be at most ${isMappedNetwork ? 128 : longest}.`;
  const start = groups.map((group, index) => group & maskAt(prefix, index));
  if (start.some((group, index) => group !== groups[index])) {
    const network = formatNetwork({ groups: start, prefix });
    return `The address has bits set beyond its prefix length. Enter ${network} for the network, or ${formatNetwork({ groups, prefix: longest })} for the address alone.`;
  }
  return { groups, prefix };
}

function maskAt(prefix: number, index: number): number {
  const bits = Math.min(16, Math.max(0, prefix - index * 16));
  return (0xffff << (16 - bits)) & 0xffff;
}

/** Whether one of the networks contains the address. Returns false for text that isn't an address. */
export function isInNetworks(networks: readonly Network[], address: string): boolean {
  const groups = parseAddress(address);
  return groups !== null && networks.some((network) => contains(network, groups));
}

function contains({ groups, prefix }: Network, address: Address): boolean {
  if (groups.length !== address.length) return false;
  for (let index = 0; index * 16 < prefix; index++) {
    if ((((groups[index] ?? 0) ^ (address[index] ?? 0)) & maskAt(prefix, index)) !== 0) return false;
  }
  return true;
}

/** Writes a network in CIDR notation, IPv6 as in RFC 5952. */
function formatNetwork({ groups, prefix }: Network): string {
  if (groups.length === 2) return `${groups.flatMap((group) => [group >> 8, group & 255]).join('.')}/${prefix}`;
  const text = groups.map((group) => group.toString(16)).join(':');
  // Shorten the longest run of zeros, the first one if there are several.
  const [longest = ''] = [...text.matchAll(/\b0(:0)+\b/g)].map(([run]) => run).toSorted((a, b) => b.length - a.length);
  const short = longest === '' ? text : text.replace(new RegExp(`(^|:)${longest}(:|$)`), '::');
  return `${short}/${prefix}`;
}

const networkSchema = z
  .string()
  .max(limits.network, { error: 'Must be an IP address or a network.' })
  .superRefine((text, context) => {
    const network = parseNetwork(text);
    if (typeof network === 'string') context.addIssue({ code: 'custom', message: network });
  })
  .meta({ description: 'An IP address or a network in CIDR notation, such as 10.0.0.0/8.' });

/** The networks from which a key is accepted. With an empty list, like with null, it's accepted from any address. */
export const networksSchema = z
  .array(networkSchema)
  .max(limits.networks, { error: `Must contain at most ${limits.networks} addresses and networks.` });

/** Returns valid networks in CIDR notation, each once. */
export function canonicalNetworks(texts: readonly string[]): string[] {
  const networks = texts.map(parseNetwork).filter((network) => typeof network !== 'string');
  return [...new Set(networks.map(formatNetwork))];
}

/**
 * Returns the networks that contain an address, narrowest first. IPv4: the address and its /24. IPv6: its /64, /56 and /48, because
 * providers assign networks of these sizes to customers (RFC 6177).
 *
 * @param address in its canonical form
 */
export function toNetworks(address: string): string[] {
  return address.includes(':') ? toPrefixes(toGroups(address), [64, 56, 48]) : [address, ipv4Prefix(address, 3)];
}

/** Returns the first of `toNetworks`, without computing the others of an IPv4 address. */
export function toNarrowestNetwork(address: string): string {
  return address.includes(':') ? (toNetworks(address)[0] ?? '') : address;
}

/**
 * Returns a network of the size that an internet provider has. Without a counter, which could lock out many users, its addresses share turns
 * in the queue for passwords.
 */
export function toLargeNetwork(address: string): string {
  return address.includes(':') ? (toPrefixes(toGroups(address), [32])[0] ?? '') : ipv4Prefix(address, 2);
}

function ipv4Prefix(address: string, bytes: number): string {
  return `${address.split('.').slice(0, bytes).join('.')}/${bytes * 8}`;
}

function toPrefixes(groups: readonly string[], lengths: readonly number[]): string[] {
  const digits = groups.map((group) => group.padStart(4, '0')).join('');
  return lengths.map((length) => `${digits.slice(0, length / 4)}/${length}`);
}

function toGroups(address: string): string[] {
  const [left = [], right = []] = address.split('::').map((half) => half.split(':'));
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => ''), ...right];
}
