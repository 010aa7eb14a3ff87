import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

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

  it('uses only actions whose content is fixed', () => {
    for (const name of ['ci', 'release', 'security']) {
      const workflow = readFileSync(new URL(`.github/workflows/${name}.yml`, root), 'utf8');
      const actions = [...workflow.matchAll(/uses: (\S+)/g)].flatMap(([, action = '']) => (action.startsWith('./') ? [] : action));
      expect(actions).not.to.have.length(0);
      for (const action of actions) expect(action).to.match(/@[0-9a-f]{40}$/);
    }
  });
});
