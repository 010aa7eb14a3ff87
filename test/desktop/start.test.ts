import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';
import { skip } from '../support/suites.ts';

const script = fileURLToPath(new URL('../../scripts/desktop.ts', import.meta.url));

describe('npm run desktop', () => {
  const isRoot = process.getuid?.() === 0;
  const start = (options: object) => {
    const { status, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8', ...options });
    return { status, lines: stderr.trim().split('\n') };
  };

  it("says in one sentence that root can't start the console (as root)", function () {
    if (!isRoot) skip(this, 'requires root');
    expect(start({})).to.deep.equal({
      status: 1,
      lines: ['The console doesn’t start as root, because Electron’s sandbox doesn’t work for root. Start it as another user.'],
    });
  });

  it('says in one sentence that the Electron runtime is missing', () => {
    const folder = freshDirectory();
    const user = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    const env = { ...process.env, ELECTRON_OVERRIDE_DIST_PATH: folder };
    expect(start({ env, ...user })).to.deep.equal({
      status: 1,
      lines: [`${folder} contains no Electron runtime. Set ELECTRON_OVERRIDE_DIST_PATH to a folder that does, or unset it.`],
    });
  });
});
