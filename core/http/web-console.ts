import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Context, Middleware } from './middleware/context.ts';
import { type Encoded, isUnchanged, setBody, setEncodedBody, toEtag } from './middleware/encoding.ts';
import { hasKeyHeader, refuse, setRequestId } from './middleware/every-request.ts';
import { commandLinePath, readReference } from './public-reference.ts';

type PageFile = {
  mediaType: string;
  cacheControl: string;
  etag: string;
  bytes: Buffer;
  isCompressible: boolean;
  encoded: Encoded;
};

/** The files of the built console and of the reference, by path. If the console wasn't built, its page is missing. */
export type WebConsole = ReadonlyMap<string, PageFile>;

export const pagePath = '/';
const assetsFolder = 'assets';
/** The build puts a compressed copy next to each large file. */
const compressed = '.br';

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.md': 'text/plain; charset=utf-8',
  '.tgz': 'application/gzip',
};
/** These files are already compressed. */
const incompressible = new Set(['.woff2', '.tgz']);

/** Vite adds a hash of the content to these names, such as `main-D3ruV0xq.js`. */
const hashedName = /-[\w-]{8}\.\w+$/;

const notBuilt = `The console isn't built. Run "npm run build:web" in the Callkey folder, then restart the core.\n`;

/** Allows only what the page needs (OWASP Content Security Policy Cheat Sheet): its own files, and requests to its own core. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const deniedFeatures = [
  'camera',
  'clipboard-read',
  'display-capture',
  'geolocation',
  'hid',
  'microphone',
  'midi',
  'payment',
  'serial',
  'usb',
];

const securityHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': deniedFeatures.map((feature) => `${feature}=()`).join(', '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** Reads all files at startup, so that a path in a request can't lead to any other. @param commandLine its package, which may be missing */
export function readWebConsole(folder: string, commandLine: string): WebConsole {
  const hasCommandLine = existsSync(commandLine);
  const reference = [...readReference(hasCommandLine)].map(
    ([path, { mediaType, text }]) => [path, toPageFile(mediaType, Buffer.from(text))] as const,
  );
  const files = new Map([...reference, ...readBuiltPage(folder)]);
  return hasCommandLine ? files.set(commandLinePath, findFile(commandLine)) : files;
}

function readBuiltPage(folder: string): (readonly [string, PageFile])[] {
  try {
    const files = readdirSync(join(folder, assetsFolder)).filter((name) => extname(name) !== compressed);
    const names = files.map((name) => `/${assetsFolder}/${name}`);
    return [[pagePath, findFile(join(folder, 'index.html'))], ...names.map((path) => [path, findFile(join(folder, path))] as const)];
  } catch {
    return [];
  }
}

function findFile(path: string): PageFile {
  const extension = extname(path);
  const file = toPageFile(mediaTypes[extension] ?? 'application/octet-stream', readFileSync(path), !incompressible.has(extension));
  if (existsSync(path + compressed)) file.encoded.br = Promise.resolve(readFileSync(path + compressed));
  return hashedName.test(path) ? { ...file, cacheControl: 'public, max-age=31536000, immutable' } : file;
}

function toPageFile(mediaType: string, bytes: Buffer, isCompressible = true): PageFile {
  return { mediaType, cacheControl: 'no-cache', etag: toEtag(bytes), bytes, encoded: {}, isCompressible };
}

export function webConsoleMethods(files: WebConsole | undefined, path: string): string[] {
  return files !== undefined && (path === pagePath || files.has(path)) ? ['GET', 'HEAD'] : [];
}

/** Runs before the session, because the page is the same for everyone and loads even if the database is unavailable. */
export function webConsole(files: WebConsole | undefined): Middleware {
  return async (ctx, next) => {
    if (!webConsoleMethods(files, ctx.path).includes(ctx.method)) return next();
    ctx.state.route = ctx.path.replace(/(?<=^\/(assets|reference)\/).*/, ':name');
    if (hasKeyHeader(ctx)) return refuse(ctx);
    ctx.set(securityHeaders);
    setRequestId(ctx);
    const file = files?.get(ctx.path);
    if (file) await answerFile(ctx, file);
    else answerNotBuilt(ctx);
  };
}

async function answerFile(ctx: Context, file: PageFile): Promise<void> {
  ctx.set('Cache-Control', file.cacheControl);
  if (file.isCompressible) ctx.vary('Accept-Encoding');
  if (isUnchanged(ctx, file.etag)) return;
  ctx.status = 200;
  if (file.isCompressible) await setEncodedBody(ctx, file.bytes, file.encoded);
  else setBody(ctx, file.bytes);
  ctx.set('Content-Type', file.mediaType);
}

function answerNotBuilt(ctx: Context): void {
  ctx.status = 503;
  ctx.set({ 'Cache-Control': 'no-store', 'Retry-After': '60' });
  ctx.body = notBuilt;
}
