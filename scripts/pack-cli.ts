// Builds the package @callkey/cli: dist/callkey-cli-VERSION.tgz. It contains the command and its client library, bundled to JavaScript. The
// root's package.json belongs to the core, so this package gets its own. You can pass a folder other than dist.
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { manPage } from '../cli/commands/man.ts';
import { minNodeVersion } from '../cli/min-node-version.ts';
import { createProgram } from '../cli/program.ts';
import { bundle, emptyFolder, pack, pickDependencies, root, rootPackage, run } from './pack.ts';

/** This package has a binary for each platform, and npm chooses one at installation. */
const external = ['@napi-rs/keyring'];

const out = emptyFolder('callkey');
await bundle(out, {
  entryPoints: { callkey: 'cli/launch.ts', client: 'cli/client/index.ts' },
  target: 'node22',
  minify: true,
  external,
});
writeTypes();
writeLibraryEntry();
const { version } = rootPackage;
mkdirSync(join(out, 'man'));
const program = createProgram(version, () => Promise.resolve());
writeFileSync(join(out, 'man', 'callkey.1'), `${manPage(program, version)}\n`);
const launcher = join(out, 'lib', 'callkey.js');
writeFileSync(launcher, `#!/usr/bin/env node\n${readFileSync(launcher, 'utf8')}`);
chmodSync(launcher, 0o755);
for (const page of ['README.md', 'mcp.md', 'results.schema.json']) copyFileSync(join(root, 'cli', page), join(out, page));
pack(out, 'cli', {
  name: '@callkey/cli',
  description:
    'Places and cancels on-demand calls, from the command line and from programs. Repeating a request ID never places a second call',
  bin: { callkey: 'lib/callkey.js' },
  exports: { '.': { types: './types/index.d.ts', default: './lib/index.js' }, './results.schema.json': './results.schema.json' },
  // For TypeScript's older module resolution, which ignores exports.
  main: './lib/index.js',
  types: './types/index.d.ts',
  engines: { node: `>=${minNodeVersion.major}.${minNodeVersion.minor}.0` },
  // This package is needed only to store a key in the system's keychain.
  optionalDependencies: pickDependencies(external),
  man: ['man/callkey.1'],
  files: ['lib', 'types', 'man', 'mcp.md', 'results.schema.json', 'THIRD-PARTY-LICENSES.txt'],
});

/** Writes the library's entry. It imports the version check first, because undici fails to load on an older Node.js. */
function writeLibraryEntry(): void {
  const { major, minor } = minNodeVersion;
  const check = `const [major, minor] = process.versions.node.split('.').map(Number);
if (major < ${major} || (major === ${major} && minor < ${minor}))
  throw new Error(\`@callkey/cli needs Node.js ${major}.${minor} or later; this is \${process.versions.node}.\`);
`;
  writeFileSync(join(out, 'lib', 'check-node.js'), check);
  writeFileSync(join(out, 'lib', 'index.js'), "import './check-node.js';\nexport * from './client.js';\n");
}

/** Writes the declarations of the client's modules, which don't use types from other packages or from the contract. */
function writeTypes(): void {
  const declared = mkdtempSync(join(tmpdir(), 'callkey-types-'));
  mkdirSync(join(out, 'types'));
  try {
    run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', join('cli', 'client'), '--outDir', declared]);
    for (const name of ['index', 'callkey-client', 'errors', 'timing', 'types']) {
      const text = readFileSync(join(declared, 'cli', 'client', `${name}.d.ts`), 'utf8');
      writeFileSync(join(out, 'types', `${name}.d.ts`), text.replace(/from '(.*)\.ts'/g, "from '$1.js'"));
    }
  } finally {
    rmSync(declared, { recursive: true });
  }
}
