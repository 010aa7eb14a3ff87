import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { type CoreProcess, spawnCore, startCoreHere } from '../support/core.ts';
import type { DatabaseKind } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import {
  createKey,
  type DirectAccess,
  databaseWithTenants,
  onDemand,
  openDirect,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** Longer than any of these tests waits. */
const long = { DRAIN_DELAY: '300' };

const messages = ({ stdout }: CoreProcess): unknown[] => stdout.map((line) => JSON.parse(line).msg);
const untilDraining = async (core: CoreProcess) => {
  await until(() => messages(core).includes('draining'));
};

describe('a core that is told to stop', () => {
  let direct: DirectAccess;
  let tenants: Tenants;
  let key: string;
  afterEach(() => direct.close());

  async function withKey<Started extends { url: string }>(
    kind: DatabaseKind,
    start: (database: string) => Promise<Started>,
  ): Promise<Started> {
    const filled = await databaseWithTenants(kind);
    tenants = filled.tenants;
    const core = await start(filled.database);
    direct = await openDirect(filled.database);
    key = (await createKey(core.url, await signIn(core.url, 'ada@example.com'))).keyValue;
    return core;
  }

  describe('by a signal', () => {
    let core: CoreProcess;
    const start = async (kind: DatabaseKind, environment: Record<string, string> = {}) => {
      core = await withKey(kind, (database) => spawnCore(database, environment));
    };
    afterEach(() => core.child.kill('SIGKILL'));

    /**
     * Sends a request to place a call, but without its body, so that the core accepts it but can't finish it.
     *
     * @returns a function that sends the body
     */
    const halfPlaced = async () => {
      const body = JSON.stringify({ requestId: 'half', contact: { phone: somePhone() } });
      const headers = { 'X-API-Key': key, 'Content-Type': 'application/json', 'Content-Length': body.length, Expect: '100-continue' };
      const sending = request(onDemand(core.url, tenants.campaign.id), { method: 'POST', headers });
      sending.flushHeaders();
      await once(sending, 'continue');
      return async () => {
        const answered: Promise<[IncomingMessage]> = once(sending, 'response') as Promise<[IncomingMessage]>;
        sending.end(body);
        const [response] = await answered;
        return { status: response.statusCode, body: await text(response) };
      };
    };

    for (const [name, signals, kind] of [
      ['two SIGTERMs', ['SIGTERM', 'SIGTERM'], 'sqlite'],
      ['SIGTERM and SIGINT', ['SIGTERM', 'SIGINT'], 'postgres'],
    ] as const) {
      it(`immediately finishes the accepted requests on ${name}, and exits with 0`, async () => {
        await start(kind);
        const finish = await halfPlaced();
        const ended = once(core.child, 'exit');
        for (const signal of signals) core.child.kill(signal);
        await untilDraining(core);
        const { status, body } = await finish();
        expect([status, JSON.parse(body).state]).to.deep.equal([202, 'queued']);
        expect((await ended)[0]).to.equal(0);
        expect(await direct.storage.database.read('calls').pluck('request_id')).to.deep.equal(['half']);
        // It also writes when the key was last used.
        const [lastUsed]: unknown[] = await direct.storage.database.read('api_keys').pluck('last_used_at');
        expect(lastUsed).to.be.a('number');
      });
    }

    it("reports immediately that it isn't ready, but accepts requests and new connections until the delay is over", async () => {
      await start('sqlite', long);
      const ready = () => ask('GET', `${core.managementUrl}/readyz`);
      expect((await ready()).status).to.equal(200);
      const connection = new Agent({ keepAlive: true, maxSockets: 1 });
      const sockets = new Set<unknown>();
      const kept = () =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const getting = request(`${core.url}/nowhere`, { agent: connection }, (response) => resolve(response.resume()));
          getting
            .on('socket', (socket) => sockets.add(socket))
            .on('error', reject)
            .end();
        });
      expect((await kept()).headers.connection).to.equal('keep-alive');
      core.child.kill('SIGTERM');
      await untilDraining(core);
      expect((await ready()).status).to.equal(503);
      expect((await ask('GET', `${core.managementUrl}/healthz`)).status).to.equal(200);
      // The core still accepts requests over the existing connection, and over new ones.
      expect([(await kept()).headers.connection, sockets.size]).to.deep.equal(['close', 1]);
      for (let call = 0; call < 20; call++) {
        const placed = await placeCall(core.url, tenants.campaign.id, key);
        expect([placed.status, placed.headers['connection']]).to.deep.equal([202, 'close']);
      }
      connection.destroy();
    });

    it('exits immediately with an error code on another signal a second later', async () => {
      await start('sqlite', long);
      core.child.kill('SIGTERM');
      await untilDraining(core);
      const [code] = await (async () => {
        const ended = once(core.child, 'exit');
        // The core ignores a repeated signal for a second.
        const again = setInterval(() => core.child.kill('SIGTERM'), 50);
        return ended.finally(() => clearInterval(again));
      })();
      expect(code).to.equal(1);
    });
  });

  const startHere = (environment: Record<string, string>) => withKey('sqlite', (database) => startCoreHere(database, { environment }));

  it("waits for the hand-off in progress, and doesn't claim more calls", async () => {
    let answer = () => {};
    const receiver = await startReceiver((_, response) => {
      answer = () => void response.writeHead(202).end();
    });
    const core = await startHere({
      DIALER: 'webhook',
      DIALER_URL: receiver.url,
      DIALER_SECRETS: signingSecret,
      DIALER_CONCURRENCY: '1',
    });
    const first = textAt(await placeCall(core.url, tenants.campaign.id, key), 'contactId');
    await until(() => receiver.received.length > 0);
    const second = textAt(await placeCall(core.url, tenants.campaign.id, key), 'contactId');
    const stopped = core.close();
    answer();
    await stopped;
    await receiver.close();
    const rows: { contact_id: string; state: string; handoff: string | null }[] = await direct.storage.database.read('calls');
    expect(new Map(rows.map(({ contact_id, state, handoff }) => [contact_id, `${state} ${handoff}`]))).to.deep.equal(
      new Map([
        [first, 'dialing taken'],
        [second, 'queued null'],
      ]),
    );
  });
});
