import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ask } from '../support/http.ts';
import { skip } from '../support/suites.ts';
import { until } from '../support/until.ts';

const dockerfile = 'core/deploy/Dockerfile';
const root = fileURLToPath(new URL('../..', import.meta.url));
const run = (...args: string[]) => spawnSync('docker', args, { cwd: root, encoding: 'utf8' });

/** @returns what the command prints @throws if it fails */
function docker(...args: string[]): string {
  const { status, stdout, stderr } = run(...args);
  if (status !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

describe("the core's image", () => {
  it('starts a core that is healthy, serves its port, and stops when told to (needs Docker)', async function () {
    // Building it downloads the base image and the packages.
    this.timeout(900_000);
    if (run('info').status !== 0) skip(this, "Docker isn't running");
    const [, base = ''] = /^FROM (\S+)$/m.exec(readFileSync(join(root, dockerfile), 'utf8')) ?? [];
    if (run('pull', '--quiet', base).status !== 0) skip(this, `Docker can't download ${base}`);
    const image = `callkey-core-test-${process.pid}`;
    try {
      docker('build', '--quiet', '--file', dockerfile, '--tag', image, '.');
      docker('run', '--detach', '--name', image, '--publish', '127.0.0.1::8080', image);
      await until(async () => run('exec', image, 'callkey-core', '--health').status === 0);
      // Before anyone has signed in.
      expect((await ask('GET', `http://${docker('port', image, '8080')}/console/session`)).status).to.equal(401);
      docker('stop', '--time', '60', image);
      expect(docker('inspect', '--format', '{{.State.ExitCode}}', image)).to.equal('0');
    } finally {
      run('rm', '--force', '--volumes', image);
      run('rmi', image);
    }
  });
});
