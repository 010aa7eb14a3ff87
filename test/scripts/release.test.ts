import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';

const root = new URL('../..', import.meta.url);
const release = (...args: string[]) =>
  execFileSync(process.execPath, ['scripts/release.ts', ...args], {
    cwd: fileURLToPath(root),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });

describe('npm run release', () => {
  it('builds the bill of materials of one version, with licenses, and says why a part is missing', function () {
    this.timeout(60_000);
    expect(release('--dry', 'version', 'sbom', 'provenance'))
      .to.match(/^ok {7}version: \d+\.\d+\.\d+, in the changelog as ".+"$/m)
      .and.match(/^ok {7}sbom: \d+ packages, each with a license$/m)
      .and.match(/^skipped {2}provenance: .+$/m)
      .and.match(/^[0-9a-f]{64} {2}callkey-[\d.]+\.cdx\.json$/m);
  });

  it("isn't released without a tag", () => {
    expect(() => release('version'))
      .to.throw()
      .with.property('status', 1);
  });

  it('has pinned inputs: actions by commit, images by exact version', () => {
    const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
    const workflows = readdirSync(new URL('.github/workflows/', root)).map((file) => read(`.github/workflows/${file}`));
    const used = workflows.flatMap((workflow) => [...workflow.matchAll(/uses: (?!\.\/)(\S+)/g)].map(([, action = '']) => action));
    expect(used).not.to.have.length(0);
    expect(used.filter((action) => !/@[0-9a-f]{40}$/.test(action))).to.deep.equal([]);
    const images = [...read('core/deploy/Dockerfile').matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, image]) => image);
    images.push(/image: (postgres\S+)/.exec(read('core/deploy/compose.yaml'))?.[1]);
    expect(images.filter((image) => !/:\d+\.\d+(\.\d+)?-/.test(image ?? ''))).to.deep.equal([]);
  });

  it('publishes the files of all folders side by side, with their checksums', () => {
    const workflow = readFileSync(new URL('.github/workflows/release.yml', root), 'utf8');
    const job = /^ {2}release:\n(.*?)^ {2}\w+:\n/ms.exec(workflow)?.[1] ?? '';
    const commands = [...job.matchAll(/^ +- run: (.+)$/gm)].map(([, command = '']) => command);
    const cwd = freshDirectory();
    for (const path of ['callkey-linux-x64', 'desktop-packages/Callkey.AppImage']) {
      mkdirSync(join(cwd, 'files', path, '..'), { recursive: true });
      writeFileSync(join(cwd, 'files', path), path);
    }
    const script = `gh() { (cd release && sha256sum --check --quiet SHA256SUMS); printf '%s\n' "$@"; }\n(${commands.join(')\n(')})`;
    const env = { PATH: process.env['PATH'], GITHUB_REF_NAME: 'v1.2.3', GITHUB_REPOSITORY: 'callkey/callkey' };
    const printed = execFileSync('bash', ['--norc', '-euc', script], { cwd, env, encoding: 'utf8' });
    expect(printed.split('\n').filter((line) => line.startsWith('release/'))).to.deep.equal(
      ['Callkey.AppImage', 'SHA256SUMS', 'callkey-linux-x64'].map((name) => `release/${name}`),
    );
  });
});
