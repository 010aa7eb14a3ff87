import { readFileSync, renameSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect } from 'chai';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createManagementApp } from '../../core/http/management.ts';
import { version } from '../../core/program.ts';
import { migrate } from '../../core/storage/migrate.ts';
import { fakeClock } from '../support/clock.ts';
import { adminOn } from '../support/commands.ts';
import { openCore } from '../support/core.ts';
import { freshDirectory, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { listenHere } from '../support/listen.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const deploy = new URL('../../core/deploy/', import.meta.url);

describe('concurrent scrapes', () => {
  it('share one set of readings, but the next scrape takes new ones', async () => {
    const registry = new Registry();
    const readings: ((text: string) => void)[] = [];
    registry.metrics = () => new Promise((resolve) => readings.push(resolve));
    const deps = { version: '', registry, isReady: async () => true, isClockAhead: () => false, log: pino({ level: 'silent' }) };
    let requests = 0;
    const app = createManagementApp({ ...deps, host: '127.0.0.1' }).callback();
    const { url, close } = await listenHere(
      createServer((request, response) => {
        requests++;
        void app(request, response);
      }),
    );
    const scrape = async () => (await ask('GET', `${url}/metrics`)).text;
    try {
      const scrapes = Array.from({ length: 50 }, scrape);
      await until(() => requests === 50);
      readings.shift()?.('first');
      expect(new Set(await Promise.all(scrapes))).to.deep.equal(new Set(['first']));
      const next = scrape();
      await until(() => readings.length > 0);
      readings.shift()?.('second');
      expect([await next, readings.length]).to.deep.equal(['second', 0]);
    } finally {
      await close();
    }
  });
});

describe('the metrics', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();

    beforeEach(() => {
      clock.set('2026-11-21T09:00:00.000Z');
    });
    // The first test looks at a core that hasn't done anything yet.
    const harness = openOnce(() => openCore({ kind, clock }));

    const scrape = async () => (await ask('GET', `${harness.core.managementUrl}/metrics`)).text;
    const figure = (text: string, name: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${name} `))
          ?.slice(name.length),
      );

    it('have every possible label value from the start', async () => {
      const text = await scrape();
      for (const series of [
        ...['accepted', 'refused', 'undecided'].map((result) => `callkey_api_key_authentications_total{result="${result}"} 0`),
        ...['accepted', 'refused', 'throttled', 'undecided'].map((result) => `callkey_sign_ins_total{result="${result}"} 0`),
        ...['accepted', 'refused', 'throttled', 'undecided'].map((result) => `callkey_second_factor_codes_total{result="${result}"} 0`),
        ...['refused', 'idle', 'unread', 'waiting'].map((reason) => `callkey_connections_cut_total{reason="${reason}"} 0`),
        ...['taken', 'rejected', 'not-taken', 'answer-lost', 'doubt'].map(
          (result) => `callkey_dialer_handoffs_total{result="${result}"} 0`,
        ),
        ...['completed', 'no_answer', 'busy', 'failed'].map((state) => `callkey_outcomes_total{state="${state}"} 0`),
        ...['look up', 'place', 'cancel', 'explain'].map((operation) => `callkey_batch_size_count{operation="${operation}"} 0`),
        'callkey_last_backup_timestamp_seconds 0',
      ]) {
        expect(text, series).to.contain(`${series}\n`);
      }
    });

    it('reflect the database at the time of the scrape', async () => {
      const { write, read } = harness.direct.storage.database;
      for (const table of ['sessions', 'calls'] as const) await write(table).delete();
      const { keyValue } = await createKey(harness.core.url, await signIn(harness.core.url, 'ada@example.com'));
      await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue);
      clock.advance({ seconds: 30 });
      const text = await scrape();
      const names = ['callkey_queue_due', 'callkey_queue_oldest_seconds', 'callkey_sessions', 'callkey_ready'];
      expect(names.map((name) => figure(text, name))).to.deep.equal([1, 30, 1, 1]);
      expect(figure(text, 'callkey_schema_version')).to.equal(await read('schema_migrations').then(({ length }) => length));
      // The core may have written when the key was used.
      expect(figure(text, 'callkey_last_used_lag_seconds')).to.be.oneOf([0, 30]);
      expect(figure(text, 'callkey_database_size_bytes{part="database"}')).to.be.greaterThan(10_000);
      expect(figure(text, 'callkey_database_size_bytes{part="wal"}')).to.be.greaterThan(0);
      expect(text).to.match(/callkey_database_connections\{pool="[\w-]+",state="used"\} \d/);
    });

    it('count what the core has done', async () => {
      const route = '/api/v1/campaigns/:campaignId/contacts/on-demand';
      const series = [
        ...[202, 401].map((status) => `callkey_http_request_duration_seconds_count{route="${route}",method="POST",status="${status}"}`),
        ...['api_key_authentications', 'sign_ins'].map((name) => `callkey_${name}_total{result="accepted"}`),
        'callkey_batch_size_count{operation="place"}',
      ];
      const count = async () => {
        const text = await scrape();
        return series.map((name) => figure(text, name) || 0);
      };
      const before = await count();
      const { keyValue } = await createKey(harness.core.url, await signIn(harness.core.url, 'ada@example.com'));
      for (const key of [keyValue, 'nonsense']) await placeCall(harness.core.url, harness.tenants.campaign.id, key);
      expect(await count()).to.deep.equal(before.map((earlier) => earlier + 1));
    });

    it('say which version is running, and that it has a complete schema', async () => {
      expect(await scrape()).to.contain(`callkey_build_info{version="${version}"} 1\n`);
      expect((await ask('GET', `${harness.core.managementUrl}/healthz`)).json).to.deep.equal({ status: 'alive', version });
      expect(await migrate(harness.direct.storage.database)).to.deep.equal([]);
    });

    it('include everything that the alerts and the dashboard query', async () => {
      // The durations of requests appear with the first one.
      await ask('GET', `${harness.core.url}/console/session`);
      const text = await scrape();
      const files = ['prometheus/callkey-alerts.yml', 'grafana/callkey-dashboard.json'].map((file) =>
        readFileSync(new URL(file, deploy), 'utf8'),
      );
      const asked = new Set(files.join().match(/\b(?:callkey|process)_[a-z_]+/g));
      expect(asked.size).to.be.greaterThan(15);
      const missing = [...asked].filter((name) => !text.includes(`\n${name}{`) && !text.includes(`\n${name} `));
      expect(missing).to.deep.equal([]);
    });

    if (kind === 'sqlite') {
      it("while the database is down, report that the core isn't ready, and omit values from the database", async () => {
        const file = harness.database.slice('sqlite:'.length);
        renameSync(file, `${file}.away`);
        const text = await scrape();
        renameSync(`${file}.away`, file);
        expect(figure(text, 'callkey_ready')).to.equal(0);
        expect(text)
          .to.match(/^callkey_queue_due Nan$/m)
          .and.not.to.contain('callkey_api_keys{');
        expect(figure(await scrape(), 'callkey_ready')).to.equal(1);
      });

      it('report when the last backup was made, and an audit event records the backup', async () => {
        const before = Date.now();
        await adminOn(harness.database).json('backup', `${freshDirectory()}/copy.db`);
        expect(figure(await scrape(), 'callkey_last_backup_timestamp_seconds')).to.be.within(before / 1_000, Date.now() / 1_000);
        const events = await harness.direct.storage.database.read('audit_events').where({ action: 'backup.created' });
        expect(events.map(({ subject_name }) => subject_name)).to.deep.equal(['copy.db']);
      });
    }

    it('count unrevoked keys by the days until they expire', async () => {
      await harness.direct.storage.database.write('api_keys').delete();
      const counted = async () => {
        const figures = (await scrape()).matchAll(/^callkey_api_keys\{days_left="(\w+)"\} (\d+)$/gm);
        return Object.fromEntries(Array.from(figures, ([, left, keys]) => [left, Number(keys)]));
      };
      const cookie = await signIn(harness.core.url, 'ada@example.com');
      const dates = ['2026-11-22', '2026-11-28', '2026-11-29', '2026-12-20', '2026-12-31', '2027-05-01', '2028-01-01', '2029-01-01'];
      for (const date of dates) await createKey(harness.core.url, cookie, date, { kind: 'custom', date });
      await createKey(harness.core.url, cookie, 'No expiration');
      const revoked = await createKey(harness.core.url, cookie, 'revoked');
      await ask('DELETE', `${harness.core.url}/console/api-keys/${revoked.id}`, { cookie });
      clock.set('2026-11-22T22:59:59.999Z');
      expect(await counted()).to.deep.equal({ expired: 0, '7': 3, '30': 1, more: 4, never: 1 });
      clock.set('2026-11-22T23:00:00.000Z');
      expect(await counted()).to.deep.equal({ expired: 1, '7': 2, '30': 1, more: 4, never: 1 });
    });
  });
});
