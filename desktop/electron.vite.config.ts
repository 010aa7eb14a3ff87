import { fileURLToPath } from 'node:url';
import { defineConfig } from 'electron-vite';

const from = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const to = (path: string) => from(`../dist/desktop/${path}`);

/** Most licences require their text beside the bundled code. */
const license = { fileName: 'THIRD-PARTY-LICENSES.md' };

/** Bundles the dependencies, too: the package needs no node_modules. */
export default defineConfig({
  main: {
    build: {
      outDir: to('main'),
      license,
      externalizeDeps: false,
      minify: true,
      rollupOptions: { input: { main: from('main/main.ts') }, output: { format: 'es', entryFileNames: '[name].js' } },
    },
  },
  preload: {
    build: {
      outDir: to('preload'),
      externalizeDeps: false,
      // A sandboxed preload cannot be an ES module.
      rollupOptions: { input: { preload: from('preload/preload.ts') }, output: { format: 'cjs', entryFileNames: '[name].cjs' } },
    },
  },
  renderer: {
    root: from('renderer'),
    base: './',
    build: {
      outDir: to('renderer'),
      license,
      // Nothing inline: the page's policy forbids it.
      minify: true,
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rollupOptions: { input: from('renderer/index.html') },
    },
  },
});
