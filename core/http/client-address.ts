import proxyAddress from 'proxy-addr';
import type { Context } from './context.ts';

/**
 * What a request says of where it came from counts only as far as trusted proxies have vouched for it: `X-Forwarded-For` is read from
 * the right, up to the first address that is none of theirs. With no proxies, it is the connection that counts.
 */
export function clientAddress(proxies: readonly string[]): { addressOf(ctx: Context): string; isSecure(ctx: Context): boolean } {
  const isTrusted = proxyAddress.compile([...proxies]);
  return {
    addressOf: (ctx) => proxyAddress(ctx.req, isTrusted).replace(/^::ffff:(?=\d+\.)/, ''),
    isSecure(ctx) {
      if ('encrypted' in ctx.req.socket) return true;
      const { remoteAddress } = ctx.req.socket;
      if (remoteAddress === undefined || !isTrusted(remoteAddress, 0)) return false;
      // Each proxy adds its own word at the end; the first is what the client's own connection was.
      return ctx.get('X-Forwarded-Proto').split(',')[0]?.trim().toLowerCase() === 'https';
    },
  };
}
