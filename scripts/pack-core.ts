// Builds the package @callkey/core: dist/callkey-core-VERSION.tgz. It contains the core and `admin`, bundled to JavaScript, the console
// (npm run build:web), the package @callkey/cli, which the core offers for download, the page for integrators, and core/deploy and core/docs. You can
// pass a folder other than dist.
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { newestNode } from '#contract/node-release.ts';
import { repository } from '#contract/pages.ts';
import { bundle, emptyFolder, pack, pickDependencies, root, rootPackage, run } from './pack.ts';

/** Packages that can't be bundled: they're native, or load parts of themselves by name. */
const external = ['argon2', 'knex', 'pg', 'sqlite3'];
const oldestNode = 24;
const commands = { 'callkey-core': 'main', 'callkey-admin': 'admin' };

const out = emptyFolder('callkey-core');
await bundle(out, { entryPoints: { main: 'core/main.ts', admin: 'core/admin.ts' }, target: `node${oldestNode}`, minify: false, external });
// Checks the version before loading the bundle, because an older Node.js can't even parse it.
const launcher = (command: string, entry: string) => `#!/usr/bin/env node
if (Number.parseInt(process.versions.node, 10) < ${oldestNode}) {
  process.stderr.write(\`${command} needs Node.js ${oldestNode} or later, and this is \${process.version}.\\n\`);
  process.exitCode = 1;
} else {
  await import('../lib/${entry}.js');
}
`;
mkdirSync(join(out, 'bin'));
for (const [command, entry] of Object.entries(commands))
  writeFileSync(join(out, 'bin', `${command}.js`), launcher(command, entry), { mode: 0o755 });
// The core looks for these files here, relative to `lib` instead of `core`.
copyFileSync(join(root, 'core', 'openapi.json'), join(out, 'openapi.json'));
// The bundle looks for statements next to itself.
for (const path of globSync('core/storage/**/*.sql', { cwd: root })) copyFileSync(join(root, path), join(out, 'lib', basename(path)));
cpSync(join(root, 'dist', 'web'), join(out, 'dist', 'web'), { recursive: true });
run(process.execPath, [join('scripts', 'pack-cli.ts'), dirname(out)]);
const commandLine = `callkey-cli-${rootPackage.version}.tgz`;
copyFileSync(join(dirname(out), commandLine), join(out, 'dist', commandLine));
cpSync(join(root, 'core', 'reference'), join(out, 'reference'), { recursive: true });
for (const folder of ['deploy', 'docs']) cpSync(join(root, 'core', folder), join(out, folder), { recursive: true });
copyFileSync(join(root, 'core', 'deploy', 'README.md'), join(out, 'README.md'));
linkWithinPackage();
copyFileSync(join(root, 'CHANGELOG.md'), join(out, 'CHANGELOG.md'));
pack(out, 'core', {
  name: '@callkey/core',
  description: 'API keys for a voice-agent campaign platform, and the on-demand call endpoints that accept them',
  bin: Object.fromEntries(Object.keys(commands).map((command) => [command, `bin/${command}.js`])),
  engines: { node: `>=${newestNode}` },
  dependencies: pickDependencies(external),
  files: ['bin', 'lib', 'dist', 'deploy', 'docs', 'reference', 'openapi.json', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt'],
});

/** Makes the pages' links to files that aren't in the package point to the repository. */
function linkWithinPackage(): void {
  for (const page of ['README.md', ...globSync('docs/**/*.md', { cwd: out })]) {
    const source = page === 'README.md' ? 'core/deploy/README.md' : `core/${page}`;
    const text = readFileSync(join(out, page), 'utf8').replace(/\]\((?!\w+:)([^)#\s]+)/g, (_link, path: string) => {
      const target = join(dirname(source), path);
      const packed = target.replace(/^core\//, '');
      return existsSync(join(out, packed))
        ? `](${relative(dirname(page), packed)}`
        : `](${repository}/blob/v${rootPackage.version}/${target}`;
    });
    writeFileSync(join(out, page), text);
  }
}
