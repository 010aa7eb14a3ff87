/**
 * Returns the networks that contain an address, narrowest first. IPv4: the address and its /24. IPv6: its /64, /56 and /48, because
 * providers assign networks of these sizes to customers (RFC 6177).
 *
 * @param address in its canonical form
 */
export function toNetworks(address: string): string[] {
  return address.includes(':') ? toPrefixes(toGroups(address), [64, 56, 48]) : [address, ipv4Prefix(address, 3)];
}

/**
 * Returns a network of the size that an internet provider or a large organization has. There's no counter for it, because that could lock
 * out many users. But in the queue for passwords, all addresses in it share its turns.
 */
export function toProvider(address: string): string {
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
