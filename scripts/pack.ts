// Shared by the scripts that build published packages.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { repository } from '#contract/pages.ts';

export const root = join(import.meta.dirname, '..');

type PackageJson = { version: string; license: string; dependencies: Record<string, string> };
export const rootPackage: PackageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Creates a package's empty folder, in `dist` or in the folder passed to the command. */
export function emptyFolder(name: string): string {
  const folder = join(resolve(process.argv[2] ?? join(root, 'dist')), name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** esbuild's options for all bundles. Names are kept, so that stack traces stay readable. */
export const bundling = { absWorkingDir: root, bundle: true, platform: 'node', keepNames: true, legalComments: 'none' } as const;

type Bundle = { entryPoints: Record<string, string>; target: string; minify: boolean; external: string[] };

/** Bundles to JavaScript in the package's `lib`, with the licenses of the bundled packages, which most of them require. */
export async function bundle(folder: string, options: Bundle): Promise<void> {
  const { metafile } = await build({
    ...bundling,
    ...options,
    outdir: join(folder, 'lib'),
    // A command loads only the files that it needs.
    splitting: true,
    format: 'esm',
    metafile: true,
    // The bundled CommonJS modules need `require` to load Node.js's own modules.
    banner: { js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);" },
  });
  writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), listLicenses(Object.keys(metafile.inputs)));
}

/** Takes the exact versions of the root's dependencies. */
export function pickDependencies(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, rootPackage.dependencies[name] ?? '']));
}

/**
 * Writes package.json and our license to `folder`, and packs the folder into NAME-VERSION.tgz next to it. The package's name has our scope,
 * because anyone could publish a package under a name without one.
 *
 * @param directory the directory of the package's source in the repository
 */
export function pack(folder: string, directory: string, packageJson: { name: `@callkey/${string}`; [field: string]: unknown }): void {
  const { version, license } = rootPackage;
  const content = {
    version,
    license,
    repository: { type: 'git', url: `git+${repository}.git`, directory },
    bugs: { url: `${repository}/issues` },
    type: 'module',
    publishConfig: { access: 'public', provenance: true },
    ...packageJson,
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(content, undefined, 2)}\n`);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  run('npm', ['pack', '--pack-destination', '..'], folder);
}

export function run(command: string, args: string[], cwd = root): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) throw error ?? new Error(`${command} failed.`);
}

/** @param paths of the bundled files, relative to the root @param more texts of others */
export function listLicenses(paths: readonly string[], more: readonly string[] = []): string {
  const folders = new Set(paths.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []));
  const texts = [...folders]
    .toSorted()
    .map((folder) => `${folder.replace(/^.*node_modules\//, '')}\n\n${readLicense(join(root, folder)).trim()}\n`);
  return [...texts, ...ownDataLicenses(paths), ...more].join(`\n${'-'.repeat(80)}\n\n`);
}

/** Returns the licenses of other people's data in our own folders, from files such as LICENSE.libphonenumber. */
function ownDataLicenses(paths: readonly string[]): string[] {
  const folders = new Set(paths.filter((path) => !path.includes('node_modules')).map((path) => dirname(join(root, path))));
  return [...folders].flatMap((folder) => {
    const files = readdirSync(folder).filter((name) => name.startsWith('LICENSE.'));
    return files.map((file) => `${file.slice('LICENSE.'.length)}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
  });
}

function readLicense(folder: string): string {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8');
  // A few packages only name their license.
  const { license, homepage, repository }: Record<string, unknown> = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new Error(`${folder} doesn't name a license.`);
  return `${license}: ${String(homepage ?? repository)}`;
}
