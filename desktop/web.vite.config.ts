import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { defineConfig } from 'vite';

const from = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const assets = from('../dist/web/assets/');

/** Builds the same page as electron.vite.config.ts, but with the browser's bridge instead of the preload script's. The core serves it. */
export default defineConfig({
  root: from('renderer'),
  // The base is relative, because a proxy may serve the core under a path.
  base: './',
  resolve: { alias: { 'node:zlib': from('web/crc32.ts') } },
  plugins: [
    {
      name: 'web-entry',
      transformIndexHtml: {
        order: 'pre',
        handler: (html) => ({
          html: html.replace('./main.tsx', '../web/main.ts'),
          tags: [{ tag: 'link', attrs: { rel: 'icon', href: '../icon/icon.svg' }, injectTo: 'head' }],
        }),
      },
    },
    {
      name: 'web-compression',
      // Compresses in advance, because the best compression takes a second, which is too long for a core's first response.
      writeBundle() {
        for (const name of readdirSync(assets).filter((name) => /\.(js|css)$/.test(name)))
          writeFileSync(`${assets}${name}.br`, brotliCompressSync(readFileSync(assets + name)));
      },
    },
  ],
  build: {
    outDir: from('../dist/web'),
    emptyOutDir: true,
    license: { fileName: 'assets/THIRD-PARTY-LICENSES.md' },
    // Nothing may be inline, because the page's content security policy forbids it.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
});
