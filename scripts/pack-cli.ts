// Builds the package that is published as `callkey`, and packs it: dist/callkey-VERSION.tgz. It has the command alone, bundled to
// JavaScript. Another folder than dist may be given.
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, dependenciesOf, emptyFolder, pack, root } from './pack.ts';

/** Has a binary for each platform, which npm picks at the installation. */
const external = ['@napi-rs/keyring'];
const out = emptyFolder('callkey');
await bundle(out, { entryPoints: ['cli/main.ts'], target: 'node22', minify: true, external });
const main = join(out, 'lib', 'main.js');
writeFileSync(main, `#!/usr/bin/env node\n${readFileSync(main, 'utf8')}`);
chmodSync(main, 0o755);
copyFileSync(join(root, 'cli', 'README.md'), join(out, 'README.md'));
copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
pack(out, {
  name: 'callkey',
  description: 'Places and cancels on-demand calls from the command line',
  bin: { callkey: 'lib/main.js' },
  // The least that the bundled undici runs on.
  engines: { node: '>=22.19.0' },
  dependencies: dependenciesOf(external),
  files: ['lib', 'THIRD-PARTY-LICENSES.txt'],
});
