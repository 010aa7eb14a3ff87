import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, type Socket, SocketAddress } from 'node:net';
import proxyAddress from 'proxy-addr';
import type { Context } from './context.ts';

/**
 * Finds out which address a request comes from: the last address in `X-Forwarded-For` that isn't a trusted proxy's, if the header comes
 * from a trusted proxy; otherwise, the connection's address.
 *
 * @param onIgnored called once for each request whose forwarding header comes from a connection that isn't a trusted proxy
 */
export function clientAddress(proxies: readonly string[], onIgnored: (peer: string) => void) {
  const isTrusted = proxyTrust(proxies);
  function findAddress(req: IncomingMessage): string {
    let address = peerAddress(req);
    const forwarded = req.headers['x-forwarded-for'];
    if (forwarded === undefined) return address;
    if (!isTrusted(address)) onIgnored(address);
    for (const hop of String(forwarded).split(',').reverse()) {
      if (!isTrusted(address)) break;
      if (hop.trim() === '') continue;
      const named = canonicalAddress(hop.trim());
      // A proxy may write something other than an address, such as `unknown`. Don't trust anything before that, because anyone could have
      // written it.
      if (named === null) break;
      address = named;
    }
    return address;
  }
  return {
    getClientAddress(ctx: Context): string {
      ctx.state.address ??= findAddress(ctx.req);
      return ctx.state.address;
    },
    /** Returns the address of a proxy that isn't trusted, if the request seems to come through one. */
    findIgnoredProxy({ req }: Context): string | undefined {
      const peer = peerAddress(req);
      return req.headers['x-forwarded-for'] === undefined || isTrusted(peer) ? undefined : peer;
    },
    isSecure(ctx: Context): boolean {
      if ('encrypted' in ctx.req.socket) return true;
      if (!isTrusted(peerAddress(ctx.req))) return false;
      // If proxies append to the header, the scheme of the client's connection comes first. The outermost proxy must replace the header,
      // because otherwise the client could choose the scheme: see docs/operations/proxy-and-tls.md.
      return ctx.get('X-Forwarded-Proto').split(',')[0]?.trim().toLowerCase() === 'https';
    },
  };
}

const mappedIPv4 = /^::ffff:(?=\d+\.)/;

export function peerAddress({ socket }: { socket: Socket }): string {
  return (socket.remoteAddress ?? '').replace(mappedIPv4, '');
}

/** Returns a function that checks whether an address belongs to a trusted proxy. */
export function proxyTrust(proxies: readonly string[]): (address: string) => boolean {
  const isTrusted = proxyAddress.compile([...proxies]);
  return (address) => isTrusted(address, 0);
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:([\d.]+):\d+|\[([^\]]*)\](?::\d+)?)$/;

/**
 * Normalizes an address, so that throttles, activity and logs recognize the same client. Removes a port or zone, writes IPv6 as in RFC
 * 5952, and writes IPv4-mapped IPv6 (RFC 4291 §2.5.5.2) as IPv4.
 *
 * @returns null if it isn't an IP address
 */
function canonicalAddress(text: string): string | null {
  const [, ipv4, ipv6] = withPort.exec(text) ?? [];
  const bare = ipv4 ?? ipv6 ?? text;
  if (isIPv4(bare)) return bare;
  if (isIP(bare) === 0) return null;
  return new SocketAddress({ address: bare, family: 'ipv6' }).address.replace(mappedIPv4, '');
}
