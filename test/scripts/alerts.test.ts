import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { skip } from '../support/skip.ts';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('../../core/deploy/prometheus/', import.meta.url));
const promtool = (...args: string[]) => run('promtool', args, { cwd: folder });

describe("Prometheus' alerts", () => {
  before(async function () {
    await promtool('--version').catch(() => skip(this, "there is no promtool here: Debian's package prometheus has it"));
  });

  it('are rules that promtool accepts', async () => {
    expect((await promtool('check', 'rules', 'callkey-alerts.yml')).stdout).to.match(/SUCCESS: \d+ rules found/);
  });

  it('fire when they should, and not before', async () => {
    expect((await promtool('test', 'rules', 'callkey-alerts.test.yml')).stdout).to.contain('SUCCESS');
  });
});
