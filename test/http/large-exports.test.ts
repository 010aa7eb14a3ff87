import { expect } from 'chai';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { numbers, onEachDatabase } from '../support/databases.ts';
import { ask, untilServed } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('an export that is larger than all buffers', () => {
  onEachDatabase((kind) => {
    /** Four parts of the file. The core reads the last one when the first two have left it, which are larger than all buffers. */
    const count = 3_500;
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let oda: string;
    before(async () => {
      const { id } = harness.tenants.otherCampaign;
      await harness.direct.storage.database.write.raw(
        `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, name, placed_at, ended_at)
         SELECT 'c' || (100000 + i), '${id}', '${harness.tenants.otherAccount.id}', 'r' || i, 'k', 'busy', '${'x'.repeat(3_000)}', ${clock.now()}, ${clock.now()}
         FROM ${numbers(kind, count)}`,
      );
    });
    beforeEach(async () => {
      oda = await signIn(harness.core.url, 'oda@example.com');
    });

    const get = (path: string, cookie: string) => ask('GET', harness.core.url + path, { cookie });

    /**
     * Starts an export. The core waits for the reader in the middle of the export.
     *
     * @returns a function that reads the lines after the first
     */
    async function start(headers: Record<string, string> = {}): Promise<() => Promise<string[]>> {
      const response = await fetch(`${harness.core.url}/console/calls.csv`, {
        headers: { Cookie: oda, 'Accept-Encoding': 'identity', ...headers },
      });
      return async () => (await response.text()).split('\r\n').slice(1);
    }

    it('ends with a line that says if it was cut short, and after how many rows', async () => {
      expect((await get('/console/calls.csv?to=2026-11-21', oda)).text.split('\r\n').at(-2)).to.equal(`# complete, ${count} rows`);
      const read = await start();
      await ask('DELETE', `${harness.core.url}/console/session`, { cookie: oda });
      const lines = await read();
      const [, rows = ''] = /^# INCOMPLETE, (\d+) rows: The session has ended\./.exec(lines.at(-2) ?? '') ?? [];
      expect(Number(rows))
        .to.equal(lines.length - 2)
        .and.to.be.below(count);
    });

    it('is refused if its user already has three exports open, until the client of one of these hangs up', async () => {
      const clients = Array.from({ length: 3 }, () => new AbortController());
      const another = () => get('/console/calls.csv?from=2026-11-01&to=2026-11-01', oda);
      try {
        // Node.js would cancel a response that's no longer referenced.
        const opened: Response[] = [];
        const headers = { Cookie: oda, 'Accept-Encoding': 'identity' };
        const open = (signal: AbortSignal) => untilServed(() => fetch(`${harness.core.url}/console/calls.csv`, { headers, signal }));
        for (const { signal } of clients) opened.push(await open(signal));
        expect(opened.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
        const refused = await another();
        expect([refused.status, refused.headers['retry-after'], refused.json['detail']]).to.deep.equal([
          ...[429, '10', 'At most 3 exports at a time are allowed. Try again in 10 seconds.'],
        ]);
        expect((await get('/console/calls.csv', await signIn(harness.core.url, 'pat@example.com'))).status).to.equal(200);
        clients[0]?.abort();
        await until(async () => (await another()).status === 200);
        expect(opened).to.have.lengthOf(3);
      } finally {
        for (const client of clients) client.abort();
      }
    });

    it("causes a log line with the request's ID if the rest of it can't be read", async () => {
      const { write } = harness.direct.storage.database;
      const read = await start({ 'X-Request-Id': 'export-1' });
      await write.raw('ALTER TABLE calls RENAME TO calls_elsewhere');
      const lines = await read().finally(() => write.raw('ALTER TABLE calls_elsewhere RENAME TO calls'));
      expect(lines.at(-2)).to.match(/^# INCOMPLETE, \d+ rows: Something went wrong on the server\./);
      const failures = harness.core.log.filter(({ msg, requestId }) => msg === 'request failed' && requestId === 'export-1');
      expect(failures).to.have.lengthOf(1);
    });
  });
});
