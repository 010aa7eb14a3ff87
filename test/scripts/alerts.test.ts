import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../../scripts/support/postgres.ts';
import { adminOn } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { skip } from '../support/suites.ts';
import { createKey, databaseWithTenants, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const deploy = fileURLToPath(new URL('../../core/deploy/', import.meta.url));
const folder = join(deploy, 'prometheus');
const promtool = (...args: string[]) => run('promtool', args, { cwd: folder });
const noPrometheus = "Prometheus isn't installed: it's in Debian's package prometheus";

describe('the Prometheus alerts', () => {
  before(async function () {
    await promtool('--version').catch(() => skip(this, noPrometheus));
  });

  it('are valid according to promtool', async () => {
    expect((await promtool('check', 'rules', 'callkey-alerts.yml')).stdout).to.match(/SUCCESS: \d+ rules found/);
  });

  it('fire when their condition is met, and not before', async () => {
    expect((await promtool('test', 'rules', 'callkey-alerts.test.yml')).stdout).to.contain('SUCCESS');
  });
});

type Panel = { title: string; targets?: { expr: string }[] };

/** Starts a Prometheus that scrapes one core several times per second. @returns functions to query and stop it */
async function startPrometheus(target: string) {
  const directory = freshDirectory();
  const file = join(directory, 'prometheus.yml');
  writeFileSync(file, `scrape_configs: [{ job_name: callkey, scrape_interval: 200ms, static_configs: [{ targets: ['${target}'] }] }]\n`);
  const address = `127.0.0.1:${await freePort()}`;
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${join(directory, 'data')}`, `--web.listen-address=${address}`];
  const child = spawn('prometheus', args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  return {
    /** Returns the number of series that match an expression. Throws if Prometheus rejects it. */
    async count(expression: string): Promise<number> {
      const answer = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { data, error }: { data: { result: unknown[] }; error?: string } = JSON.parse(await answer.text());
      if (error !== undefined) throw new Error(`${expression}: ${error}`);
      return data.result.length;
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

describe('the Grafana dashboard and the alerts', () => {
  before(async function () {
    await run('prometheus', ['--version']).catch(() => skip(this, noPrometheus));
  });

  it('query only metrics that a core reports once it has done some work', async function () {
    this.timeout(60_000);
    const { database, tenants } = await databaseWithTenants('sqlite');
    const core = await startCoreHere(database, { environment: { DIALER: 'simulated' } });
    const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    expect((await adminOn(database).admin(['backup', join(freshDirectory(), 'backup.db')])).code).to.equal(0);
    const prometheus = await startPrometheus(new URL(core.managementUrl ?? '').host);
    try {
      const looks = (more: number) =>
        until(async () => (await prometheus.count(`count_over_time(callkey_ready[1m]) > ${more}`).catch(() => 0)) > 0);
      await looks(1);
      await placeCall(core.url, tenants.campaign.id, keyValue);
      const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(join(deploy, 'grafana/callkey-dashboard.json'), 'utf8'));
      const asked = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m')));
      const watched = readFileSync(join(folder, 'callkey-alerts.yml'), 'utf8').match(/\bcallkey_\w+(?:\{[a-z_]+="[^"]*"\})?/g) ?? [];
      let missing = [...asked, ...new Set(watched)];
      // On a busy machine, a scrape can lack values that the database didn't return in time. A later one has them.
      for (let scrapes = 4; missing.length > 0 && scrapes < 20; scrapes++) {
        await looks(scrapes);
        const counts = await Promise.all(missing.map((expression) => prometheus.count(expression)));
        missing = missing.filter((_, index) => counts[index] === 0);
      }
      expect([asked.length > 20, watched.length > 10, missing]).to.deep.equal([true, true, []]);
    } finally {
      await prometheus.stop();
      await core.close();
    }
  });
});
