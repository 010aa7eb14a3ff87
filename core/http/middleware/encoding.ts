import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from './context.ts';

const inGzip = promisify(gzip);
const inBrotli = promisify(brotliCompress);
/** At this quality, Brotli is as fast as gzip, and responses are a tenth smaller. Its default of 11 takes 50 times as long. */
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

const encoders = { br: (bytes: Buffer) => inBrotli(bytes, brotliOptions), gzip: (bytes: Buffer) => inGzip(bytes) };

/**
 * Both pass on each part at once instead of collecting more. Each open export has a Brotli window of its own, so it's 256 KB instead of 4 MB.
 */
const streamEncoders = {
  br: () =>
    createBrotliCompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      params: { ...brotliOptions.params, [constants.BROTLI_PARAM_LGWIN]: 18 },
    }),
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
};

type Encoding = keyof typeof encoders;
/** A body in each encoding that has been requested so far. */
export type Encoded = { [encoding in Encoding]?: Promise<Buffer> };

/** Weak, because it's the same for the compressed bytes (RFC 9110 §8.8.1). */
export function toEtag(bytes: Buffer): string {
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
}

/**
 * Sets the ETag. If the client already has this response, makes it a 304 without a body. Compares weakly (RFC 9110 §13.1.2), because some
 * clients and proxies drop the `W/`. Doesn't use `ctx.fresh`, which ignores the ETag if the request has `no-cache`, as browsers add.
 *
 * @returns whether the client already has it
 */
export function isUnchanged(ctx: Context, etag: string): boolean {
  ctx.set('ETag', etag);
  const known = ctx.get('If-None-Match').split(',');
  if (!known.some((tag) => ['*', etag.slice(2)].includes(tag.trim().replace(/^W\//, '')))) return false;
  ctx.body = null;
  ctx.status = 304;
  return true;
}

/** In bytes. Over TLS, shorter pieces take more memory, because Node encrypts all waiting pieces together. */
const piece = 64 * 1024;

/**
 * Writes a large body in pieces, each after the client has read the previous one. Otherwise, TLS would encrypt all of it at once, and keep a
 * copy for each client that doesn't read.
 */
export function setBody(ctx: Context, bytes: Buffer): void {
  ctx.body = bytes.length > piece ? Readable.from(toPieces(bytes), { objectMode: false }) : bytes;
  ctx.length = bytes.length;
}

function* toPieces(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += piece) yield bytes.subarray(start, start + piece);
}

/** @returns undefined if the client accepts neither */
function chooseEncoding(ctx: Context): Encoding | undefined {
  ctx.vary('Accept-Encoding');
  const encoding = (['br', 'gzip'] as const).find((name) => ctx.acceptsEncodings(name));
  if (encoding !== undefined) ctx.set('Content-Encoding', encoding);
  return encoding;
}

export async function setEncodedBody(ctx: Context, bytes: Buffer, encoded: Encoded = {}): Promise<void> {
  const encoding = chooseEncoding(ctx);
  if (encoding === undefined) {
    setBody(ctx, bytes);
    return;
  }
  encoded[encoding] ??= encoders[encoding](bytes);
  setBody(ctx, await encoded[encoding]);
}

/** Sends each part of the stream as soon as it's read. */
export function toEncodedStream(ctx: Context, stream: Readable): Readable {
  const encoding = chooseEncoding(ctx);
  if (encoding === undefined) return stream;
  // If the client hangs up, Koa destroys the compressed stream, and the pipeline then ends `stream`.
  return pipeline(stream, streamEncoders[encoding](), () => undefined);
}
