// Builds dist/callkey-PLATFORM: the command in one file that includes Node.js (Node's "single executable applications"), for the platform
// that it runs on, and the licenses of what it contains: `npm run pack:executable`.
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundling, listLicenses, root, rootPackage } from './pack.ts';

const { platform, arch } = process;
const name = join(root, 'dist', `callkey-${platform}-${arch}`);
const executable = platform === 'win32' ? `${name}.exe` : name;

/**
 * CommonJS can't await at the top level, as main.ts does, so everything after the imports becomes a function. If the function never
 * finishes, but there's nothing left to wait for, the exit code is the one that Node.js uses in this case.
 */
const asyncMain: Plugin = {
  name: 'async-main',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]cli[/\\]main\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      const [imports = ''] = /^(?:import [^;]*;\n)+/.exec(text) ?? [];
      const guard = "let hasEnded = false;\nprocess.once('exit', () => { if (!hasEnded) process.exitCode = 13; });\n";
      const body = `(async () => {\n${text.slice(imports.length)}\n})().finally(() => { hasEnded = true; });\n`;
      return { contents: imports + guard + body, loader: 'ts' };
    });
  },
};

const work = mkdtempSync(join(tmpdir(), 'callkey-executable-'));
try {
  const main = join(work, 'main.cjs');
  const { metafile } = await build({
    ...bundling,
    entryPoints: ['cli/main.ts'],
    outfile: main,
    // An executable can start only with this format.
    format: 'cjs',
    target: 'node24',
    minify: true,
    metafile: true,
    alias: { '@napi-rs/keyring': './cli/connection/embedded-keyring.ts' },
    plugins: [asyncMain],
  });
  makeExecutable(main);
  const ofNode = `Node.js ${process.version}\n\nhttps://github.com/nodejs/node/blob/${process.version}/LICENSE\n`;
  const paths = [...Object.keys(metafile.inputs), 'node_modules/@napi-rs/keyring/index.js'];
  writeFileSync(`${name}-THIRD-PARTY-LICENSES.txt`, listLicenses(paths, [ofNode]));
} finally {
  rmSync(work, { recursive: true });
}
const answer = execFileSync(executable, ['--version'], { encoding: 'utf8' });
if (answer !== `${rootPackage.version}\n`) throw new Error(`${executable} --version printed ${answer}`);
process.stdout.write(`${executable}\n`);

function makeExecutable(main: string): void {
  const [keyring, ...others] = globSync(`node_modules/@napi-rs/keyring-${platform}-${arch}*/*.node`, { cwd: root });
  if (keyring === undefined || others.length > 0) throw new Error('@napi-rs/keyring must have exactly one binary for this platform.');
  const blob = join(work, 'callkey.blob');
  const config = { main, output: blob, disableExperimentalSEAWarning: true, assets: { 'keyring.node': join(root, keyring) } };
  writeFileSync(join(work, 'config.json'), JSON.stringify(config));
  execFileSync(process.execPath, ['--experimental-sea-config', join(work, 'config.json')], { stdio: 'ignore' });

  mkdirSync(join(root, 'dist'), { recursive: true });
  copyFileSync(process.execPath, executable);
  if (platform === 'darwin') execFileSync('codesign', ['--remove-signature', executable]);
  // Node.js defines both the resource's name and the marker in its binary that gets overwritten.
  const target = [executable, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'];
  const segment = platform === 'darwin' ? ['--macho-segment-name', 'NODE_SEA'] : [];
  execFileSync(process.execPath, [join(root, 'node_modules', 'postject', 'dist', 'cli.js'), ...target, ...segment], { stdio: 'ignore' });
  if (platform === 'darwin') execFileSync('codesign', ['--sign', '-', executable]);
}
