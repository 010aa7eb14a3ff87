import { createReadStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Context } from './middleware/context.ts';

// Serves Swagger UI, which shows openapi.json, from this machine. All of its URLs are relative, so that it also works under a proxy's path.

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Callkey over HTTP</title>
<link rel="stylesheet" href="reference/swagger-ui.css">
<div id="reference"></div>
<script src="reference/swagger-ui-bundle.js"></script>
<script src="reference/start.js"></script>
</html>
`;

/** The page can't send requests, because the routes are on another listener, and no one should enter a key or password here. */
const start = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#reference', deepLinking: true, supportedSubmitMethods: [], defaultModelsExpandDepth: 0 });
`;

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  // This is necessary because React sets style attributes.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Read only when requested, because most processes never need these 1.5 MB. */
const files: Readonly<Record<string, { type: string; body: () => string | NodeJS.ReadableStream }>> = {
  '/reference': { type: 'html', body: () => page },
  '/reference/start.js': { type: 'js', body: () => start },
  '/reference/swagger-ui.css': { type: 'css', body: () => openStream('swagger-ui.css') },
  '/reference/swagger-ui-bundle.js': { type: 'js', body: () => openStream('swagger-ui-bundle.js') },
};

/** Opens a file of Swagger UI: from npm's package in a checkout, or from the copy in the package that `npm run pack:core` builds. */
function openStream(file: string): NodeJS.ReadableStream {
  return createReadStream(fileURLToPath(import.meta.resolve(`#swagger-ui/${file}`)));
}

/** Handles the request if the path belongs to the page. @returns whether it does */
export function serveReference(ctx: Context): boolean {
  const file = files[ctx.path];
  if (!file) return false;
  ctx.set({ 'Content-Security-Policy': contentSecurityPolicy, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' });
  ctx.body = file.body();
  ctx.type = file.type;
  return true;
}
