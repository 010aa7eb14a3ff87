import { fileURLToPath } from 'node:url';
import { defineConfig } from 'electron-vite';

const from = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const to = (path: string) => from(`../dist/desktop/${path}`);

/** Most licenses require that they're included with the bundled code. */
const license = { fileName: 'THIRD-PARTY-LICENSES.md' };

/** The dependencies are bundled, too, so that the package doesn't need node_modules. */
export default defineConfig({
  main: {
    build: {
      outDir: to('main'),
      license,
      externalizeDeps: false,
      minify: true,
      rollupOptions: {
        input: { main: from('main/main.ts') },
        output: { format: 'es', entryFileNames: '[name].js' },
        onwarn(warning, warn) {
          // A module that should be loaded later, such as undici, would delay the start.
          if (warning.code === 'INEFFECTIVE_DYNAMIC_IMPORT') throw new Error(warning.message);
          warn(warning);
        },
      },
    },
  },
  preload: {
    build: {
      outDir: to('preload'),
      externalizeDeps: false,
      // A sandboxed preload script can't be an ES module.
      rollupOptions: { input: { preload: from('preload/preload.ts') }, output: { format: 'cjs', entryFileNames: '[name].cjs' } },
    },
  },
  renderer: {
    root: from('renderer'),
    base: './',
    build: {
      outDir: to('renderer'),
      license,
      // Nothing may be inline, because the page's content security policy forbids it.
      minify: true,
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rollupOptions: { input: from('renderer/index.html') },
    },
  },
});
