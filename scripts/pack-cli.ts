// Builds the package @callkey/cli, and packs it: dist/callkey-cli-VERSION.tgz. It has the command and its client library, bundled to
// JavaScript; the root's package.json is the core's, so that this one gets its own. Another folder than dist may be given.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';
import { leastNode } from '../cli/least-node.ts';
import { manPage } from '../cli/man-page.ts';
import { createProgram } from '../cli/program.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(resolve(process.argv[2] ?? join(root, 'dist')), 'callkey');
/** npm takes a provenance from this repository alone. */
const repository = 'https://github.com/callkey/callkey';
/** Has a binary for each platform, which npm picks at the installation. */
const external = '@napi-rs/keyring';

type PackageJson = {
  version: string;
  license: string;
  dependencies: Record<string, string>;
};
const { version, license, dependencies }: PackageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

rmSync(out, { recursive: true, force: true });
for (const folder of ['types', 'man']) mkdirSync(join(out, folder), { recursive: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { callkey: 'cli/launch.ts', client: 'cli/client/index.ts' },
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
writeTypes();
const program = createProgram(version, () => Promise.resolve());
writeFileSync(join(out, 'man', 'callkey.1'), `${manPage(program, version)}\n`);

const launcher = join(out, 'lib', 'callkey.js');
writeFileSync(launcher, `#!/usr/bin/env node\n${readFileSync(launcher, 'utf8')}`);
chmodSync(launcher, 0o755);
const packageJson = {
  // In a scope: anybody may publish a bare name.
  name: '@callkey/cli',
  version,
  description: 'Places and cancels on-demand calls, from the command line and from programs, and never one of them twice',
  license,
  repository: { type: 'git', url: `git+${repository}.git`, directory: 'cli' },
  bugs: { url: `${repository}/issues` },
  type: 'module',
  bin: { callkey: 'lib/callkey.js' },
  exports: { '.': { types: './types/index.d.ts', default: './lib/client.js' } },
  engines: { node: `>=${leastNode.major}.${leastNode.minor}.0` },
  // Only keeping a key in the system's keychain needs it.
  optionalDependencies: { [external]: dependencies[external] },
  man: ['man/callkey.1'],
  files: ['lib', 'types', 'man', 'THIRD-PARTY-LICENSES.txt'],
  publishConfig: { access: 'public', provenance: true },
};
writeFileSync(join(out, 'package.json'), `${JSON.stringify(packageJson, undefined, 2)}\n`);
writeFileSync(join(out, 'THIRD-PARTY-LICENSES.txt'), licensesOf(metafile));
copyFileSync(join(root, 'cli', 'README.md'), join(out, 'README.md'));
copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
run('npm', ['pack', '--pack-destination', '..'], out);

function run(command: string, args: string[], cwd = root): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) throw error ?? new Error(`${command} has failed.`);
}

/** What the client's modules declare. They name no type of another package or of the contract. */
function writeTypes(): void {
  const declared = mkdtempSync(join(tmpdir(), 'callkey-types-'));
  try {
    run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', join('cli', 'client'), '--outDir', declared]);
    for (const name of ['index', 'callkey-client', 'errors', 'types']) {
      const text = readFileSync(join(declared, 'cli', 'client', `${name}.d.ts`), 'utf8');
      writeFileSync(join(out, 'types', `${name}.d.ts`), text.replace(/from '(.*)\.ts'/g, "from '$1.js'"));
    }
  } finally {
    rmSync(declared, { recursive: true });
  }
}

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
