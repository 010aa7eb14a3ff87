import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const from = (path: string) => fileURLToPath(new URL(path, import.meta.url));

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
