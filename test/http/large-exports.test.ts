import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { numbers, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
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
     * Starts an export on a new connection, because the system makes the buffers of one that has carried an export larger. The core waits for
     * the reader in the middle of the export.
     */
    const start = (headers: Record<string, string> = {}) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const options = { agent: false, headers: { Cookie: oda, 'Accept-Encoding': 'identity', ...headers } };
        request(`${harness.core.url}/console/calls.csv`, options, resolve).on('error', reject).end();
      });

    const readLines = async (response: IncomingMessage) => (await text(response)).split('\r\n').slice(1);

    it('ends with a line that says if it was cut short, and after how many rows', async () => {
      expect((await get('/console/calls.csv?to=2026-11-21', oda)).text.split('\r\n').at(-2)).to.equal(`# complete, ${count} rows`);
      const response = await start();
      await ask('DELETE', `${harness.core.url}/console/session`, { cookie: oda });
      const lines = await readLines(response);
      const [, rows = ''] = /^# INCOMPLETE, (\d+) rows: The session has ended\./.exec(lines.at(-2) ?? '') ?? [];
      expect(Number(rows))
        .to.equal(lines.length - 2)
        .and.to.be.below(count);
    });

    it('is refused if its user already has three exports open, until the client of one of these hangs up', async () => {
      const another = () => get('/console/calls.csv?from=2026-11-01&to=2026-11-01', oda);
      const opened: IncomingMessage[] = [];
      try {
        for (let n = 0; n < 3; n++) opened.push(await start());
        expect(opened.map(({ statusCode }) => statusCode)).to.deep.equal([200, 200, 200]);
        const refused = await another();
        expect([refused.status, refused.headers['retry-after'], refused.json['detail']]).to.deep.equal([
          ...[429, '10', 'At most 3 exports at a time are allowed. Try again in 10 seconds.'],
        ]);
        expect((await get('/console/calls.csv', await signIn(harness.core.url, 'pat@example.com'))).status).to.equal(200);
        opened[0]?.destroy();
        await until(async () => (await another()).status === 200);
      } finally {
        for (const response of opened) response.destroy();
      }
    });

    it("causes a log line with the request's ID if the rest of it can't be read", async () => {
      const { write } = harness.direct.storage.database;
      const response = await start({ 'X-Request-Id': 'export-1' });
      await write.raw('ALTER TABLE calls RENAME TO calls_elsewhere');
      const lines = await readLines(response).finally(() => write.raw('ALTER TABLE calls_elsewhere RENAME TO calls'));
      expect(lines.at(-2)).to.match(/^# INCOMPLETE, \d+ rows: Something went wrong on the server\./);
      const failures = harness.core.log.filter(({ msg, requestId }) => msg === 'request failed' && requestId === 'export-1');
      expect(failures).to.have.lengthOf(1);
    });
  });
});
