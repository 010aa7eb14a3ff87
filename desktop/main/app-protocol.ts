import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { protocol } from 'electron';

export const appOrigin = 'app://callkey';
export const startPage = `${appOrigin}/index.html`;

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** Allows only what the page needs. `connect-src` is missing, because the main process sends all requests to the core. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** Call this before the app is ready. */
export function registerAppScheme(): void {
  protocol.registerSchemesAsPrivileged([{ scheme: 'app', privileges: { standard: true, secure: true, codeCache: true } }]);
}

/** Serves the files that were in a folder at the start at `app://callkey/`, so no path in a request can leave the folder. */
export function serveApp(folder: string): void {
  const files = new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [`${appOrigin}/${relative(folder, file).split(sep).join('/')}`, file]),
  );
  protocol.handle('app', async ({ url, method }) => {
    // After a reload, the URL includes the fragment with the screen's address.
    const file = files.get(url.replace(/#.*$/s, ''));
    if (file === undefined || method !== 'GET') return new Response('File not found.', { status: 404, headers: headersFor('.txt') });
    return new Response(await readFile(file), { headers: headersFor(extname(file)) });
  });
}

function headersFor(extension: string): Record<string, string> {
  return {
    'Content-Type': mediaTypes[extension] ?? 'text/plain; charset=utf-8',
    'Content-Security-Policy': contentSecurityPolicy,
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  };
}
