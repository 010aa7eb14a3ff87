import proxyAddress from 'proxy-addr';
import type { Context } from './context.ts';

/**
 * Where a request comes from. Forwarding headers count only as far as trusted proxies vouch for them: `X-Forwarded-For` is read from the
 * right, up to the first address that is no trusted proxy. Without proxies, only the connection counts.
 */
export function clientAddress(proxies: readonly string[]): { addressOf(ctx: Context): string; isSecure(ctx: Context): boolean } {
  const isTrusted = proxyAddress.compile([...proxies]);
  return {
    // Without proxies there is nothing to read: each refused key asks for this.
    addressOf: ({ req }) =>
      (proxies.length === 0 ? (req.socket.remoteAddress ?? '') : proxyAddress(req, isTrusted)).replace(/^::ffff:(?=\d+\.)/, ''),
    isSecure(ctx) {
      if ('encrypted' in ctx.req.socket) return true;
      const { remoteAddress } = ctx.req.socket;
      if (remoteAddress === undefined || !isTrusted(remoteAddress, 0)) return false;
      // Proxies that append put the scheme of the client's connection first. The outermost one must replace what a client sends, or the client
      // chooses: see docs/operations.md.
      return ctx.get('X-Forwarded-Proto').split(',')[0]?.trim().toLowerCase() === 'https';
    },
  };
}
