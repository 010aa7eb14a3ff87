// Builds the package that is published as `callkey`, and packs it: dist/callkey-VERSION.tgz. It has the command alone, bundled to
// JavaScript; the root's package.json is the core's, so that this one gets its own. Another folder than dist may be given.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(resolve(process.argv[2] ?? join(root, 'dist')), 'callkey');
/** Has a binary for each platform, which npm picks at the installation. */
const external = '@napi-rs/keyring';

type PackageJson = {
  version: string;
  description: string;
  license: string;
  dependencies: Record<string, string>;
};
const { version, license, dependencies }: PackageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['cli/main.ts'],
  outdir: join(out, 'lib'),
  bundle: true,
  // What a command does not need stays in a file that it does not load.
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  minify: true,
  // Stack traces that --verbose shows stay readable.
  keepNames: true,
  external: [external],
  legalComments: 'none',
  metafile: true,
  // The bundled CommonJS modules load Node's own modules with it.
  banner: { js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);" },
});

const main = join(out, 'lib', 'main.js');
writeFileSync(main, `#!/usr/bin/env node\n${readFileSync(main, 'utf8')}`);
chmodSync(main, 0o755);
const packageJson = {
  name: 'callkey',
  version,
  description: 'Places and cancels on-demand calls from the command line',
  license,
  type: 'module',
  bin: { callkey: 'lib/main.js' },
  // The least that the bundled undici runs on.
  engines: { node: '>=22.19.0' },
  dependencies: { [external]: dependencies[external] },
  files: ['lib', 'THIRD-PARTY-LICENSES.txt'],
};
writeFileSync(join(out, 'package.json'), `${JSON.stringify(packageJson, undefined, 2)}\n`);
writeFileSync(join(out, 'THIRD-PARTY-LICENSES.txt'), licensesOf(metafile));
copyFileSync(join(root, 'cli', 'README.md'), join(out, 'README.md'));
copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
const { status } = spawnSync('npm', ['pack', '--pack-destination', '..'], { cwd: out, stdio: 'inherit' });
process.exitCode = status ?? 1;

/** Most licences want to travel with what is bundled. */
function licensesOf({ inputs }: Metafile): string {
  const folders = new Set(Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []));
  return [...folders]
    .toSorted()
    .map((folder) => {
      const files = globSync('{LICENSE,LICENCE,COPYING}*', { cwd: join(root, folder) });
      const [file] = files;
      if (file === undefined) throw new Error(`${folder} has no licence file.`);
      return `${folder.replace(/^.*node_modules\//, '')}\n\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}
