import { createServer } from 'node:net';
import { expect } from 'chai';
import { CallkeyClient, CallkeyError, type ClientOptions } from '../../cli/client/index.ts';
import type { Timing } from '../../cli/client/timing.ts';
import { fakeTiming } from '../support/clock.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { listenHere } from '../support/listen.ts';
import { somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('CallkeyClient', () => {
  const its = sharedIntegrator();
  const clients: CallkeyClient[] = [];
  afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

  const connect = (options: Partial<ClientOptions> = {}, timing?: Timing) => {
    const client = new CallkeyClient({ server: its.network.url, keyValue: its.key, ...options }, timing);
    clients.push(client);
    return client;
  };
  const findCalls = (requestId: string) => its.direct.storage.database.read('calls').where({ request_id: requestId });
  const rejection = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => expect.fail("It didn't fail."),
      (error: unknown) => error,
    );
  const newCall = (requestId: string) => ({ requestId, contact: { phone: somePhone() } });

  it('includes the status, Retry-After and X-Request-Id in its errors', async () => {
    its.network.faults.push({ status: 503, headers: { 'Retry-After': '3600', 'X-Request-Id': 'seen-1' } });
    expect(await rejection(connect().place(its.tenants.campaign.id, newCall('details-1')))).to.include({
      ...{ kind: 'unreachable', status: 503, retryAfter: 3600, requestId: 'seen-1' },
    });
    const notFound = await rejection(connect().cancel(its.tenants.campaign.id, { requestId: 'nobody' }));
    expect(notFound).to.include({ status: 404, retryAfter: undefined });
    expect(notFound).to.have.property('requestId').that.is.a('string');
  });

  it('sends its own name in the User-Agent header, unless the program sets another name', async () => {
    await connect().place(its.tenants.campaign.id, newCall('agent-1'));
    await connect({ userAgent: 'orders/2' }).place(its.tenants.campaign.id, newCall('agent-2'));
    const [own, custom] = its.network.seen.map(({ headers }) => headers['user-agent']);
    expect(own).to.match(/^callkey-client\/\d+\.\d+\.\d+ node\/\d+\./);
    expect(custom).to.equal('orders/2');
  });

  it('places a call even if the program’s callbacks throw, and warns about them', async () => {
    const warnings: string[] = [];
    const warn = (warning: Error) => warnings.push(warning.message);
    process.on('warning', warn);
    const fail = (what: string) => () => {
      throw new Error(what);
    };
    its.network.faults.push({ status: 503, headers: { 'Callkey-Key-Expires': '2026-12-01T00:00:00.000Z' } });
    const callbacks = { trace: fail('trace'), onAnswer: async () => fail('onAnswer')(), onKeyEndsSoon: fail('onKeyEndsSoon') };
    const client = connect({ ...callbacks, retry: { onRetry: fail('onRetry') } }, fakeTiming());
    expect(await client.place(its.tenants.campaign.id, newCall('throwing-1'))).to.include({ requestId: 'throwing-1' });
    await until(() => ['trace', 'onAnswer', 'onKeyEndsSoon', 'onRetry'].every((what) => warnings.includes(what)));
    process.removeListener('warning', warn);
  });

  for (const [what, first, again] of [
    ['a body that arrives one byte at a time', 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', 'x'],
    ['endless 1xx responses', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['headers that arrive one byte at a time', 'HTTP/1.1 200 OK\r\nX-Long: ', 'x'],
  ] as const) {
    it(`doesn't wait forever for ${what}`, async () => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined).write(first);
        const dripping = setInterval(() => socket.write(again), 10);
        socket.on('close', () => clearInterval(dripping));
      });
      const { url, close } = await listenHere(server);
      const client = connect({ server: url, timeout: 200, retry: { attempts: 1 } });
      const error = await rejection(client.place(its.tenants.campaign.id, newCall('dripping-1')));
      expect(error).to.include({ kind: 'unreachable', isUnsent: false });
      expect(error).to.have.property('message').that.contains('in time');
      await client.close();
      await close();
    });
  }

  it('stops a request as soon as its signal aborts, and a repeated request ID finds the call', async () => {
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const controller = new AbortController();
    // Longer than this test may take, so it fails if the signal doesn't end the request.
    const client = connect({ timeout: 3_600_000 });
    const call = newCall('aborted-1');
    const placing = rejection(client.place(its.tenants.campaign.id, call, { signal: controller.signal }));
    await until(() => its.network.seen.length === 1);
    const reason = new Error('no more time');
    controller.abort(reason);
    expect(await placing).to.equal(reason);
    held.resolve();
    await until(async () => (await findCalls('aborted-1')).length === 1);
    expect(await client.place(its.tenants.campaign.id, call)).to.include({ requestId: 'aborted-1', replayed: true });
  });

  it('sends nothing if the signal has already aborted', async () => {
    const signal = AbortSignal.abort();
    expect(await rejection(connect().place(its.tenants.campaign.id, newCall('aborted-2'), { signal }))).to.equal(signal.reason);
    expect(its.network.seen).to.deep.equal([]);
  });

  it('drops a waiting request as soon as its signal aborts', async () => {
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const client = connect({ connections: 1 });
    const first = client.place(its.tenants.campaign.id, newCall('turn-1'));
    await until(() => its.network.seen.length === 1);
    const controller = new AbortController();
    const second = rejection(client.place(its.tenants.campaign.id, newCall('turn-2'), { signal: controller.signal }));
    controller.abort();
    expect(await second).to.equal(controller.signal.reason);
    held.resolve();
    await first;
    await client.place(its.tenants.campaign.id, newCall('turn-3'));
    expect(its.network.seen.map(({ body }) => JSON.parse(body).requestId)).to.deep.equal(['turn-1', 'turn-3']);
  });

  it("stops requests in flight when it's closed, and says that the calls may have been placed", async () => {
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const client = connect();
    const placing = rejection(client.place(its.tenants.campaign.id, newCall('closed-1')));
    await until(() => its.network.seen.length === 1);
    await client.close();
    const error = await placing;
    expect(error).to.be.instanceOf(CallkeyError).and.include({ kind: 'unreachable', isUnsent: false });
    expect(error)
      .to.have.property('message')
      .that.matches(/closed.*may have been placed/);
    held.resolve();
    await until(async () => (await findCalls('closed-1')).length === 1);
  });

  it("ends the delay before a retry when it's closed", async () => {
    its.network.faults.push({ status: 503, headers: { 'Retry-After': '60' } });
    const client = connect({ retry: { onRetry: () => void client.close() } });
    expect(await rejection(client.place(its.tenants.campaign.id, newCall('closed-2')))).to.include({ kind: 'unreachable' });
    expect(its.network.seen).to.have.length(1);
  });

  it("sends nothing after it's closed, and closing it again does nothing", async () => {
    const client = connect();
    await client.close();
    await client.close();
    for (const asked of [client.place(its.tenants.campaign.id, newCall('closed-3')), client.cancel('some', { requestId: 'closed-3' })]) {
      const error = await rejection(asked);
      expect(error).to.include({ kind: 'usage', message: 'The client is closed. Create a new one.' });
    }
    expect(its.network.seen).to.deep.equal([]);
  });

  const contact = { phone: '+493012345678' };
  const misuses: [string, (client: CallkeyClient, campaignId: string) => Promise<unknown>, says?: string][] = [
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['to place nothing', (client, id) => client.place(id)],
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['to place null', (client, id) => client.place(id, null)],
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['a call without a request ID', (client, id) => client.place(id, { contact })],
    ['a request ID that would change the request path', (client, id) => client.place(id, { requestId: '../x', contact })],
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['a call with a BigInt', (client, id) => client.place(id, { ...newCall('misuse-1'), variables: { number: 1n } })],
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['an invalid signal', (client, id) => client.place(id, newCall('misuse-2'), { signal: {} })],
    // @ts-expect-error JavaScript callers aren't type-checked.
    ['to cancel nothing', (client, id) => client.cancel(id)],
    ['to cancel in an invalid campaign', (client) => client.cancel('..', { requestId: 'order-1' }), "isn't a valid campaign ID"],
    ['to cancel an invalid contact', (client, id) => client.cancel(id, { contactId: '..' }), "isn't a valid contact ID"],
    ['to cancel an invalid request', (client, id) => client.cancel(id, { requestId: '' }), "isn't a valid request ID"],
  ];
  for (const [what, misuse, says = ''] of misuses) {
    it(`refuses ${what}, and sends nothing`, async () => {
      const error = await rejection(misuse(connect(), its.tenants.campaign.id));
      expect(error).to.be.instanceOf(CallkeyError).and.include({ kind: 'usage' });
      expect(error).to.have.property('message').that.contains(says);
      expect(its.network.seen).to.deep.equal([]);
    });
  }

  for (const [option, wrong] of [
    ['connections', { connections: 0 }],
    ['connections', { connections: Number.NaN }],
    ['attempts', { retry: { attempts: 0 } }],
    ['userAgent', { userAgent: 'a\nb' }],
    ['userAgent', { userAgent: 'Bücher' }],
    ['server', { server: undefined }],
  ] as const) {
    it(`names the option ${option} in the error for ${JSON.stringify(wrong)}`, () => {
      // @ts-expect-error JavaScript callers aren't type-checked.
      expect(() => connect(wrong))
        .to.throw(CallkeyError, option)
        .with.property('kind', 'usage');
    });
  }

  it('requires options', () => {
    // @ts-expect-error JavaScript callers aren't type-checked.
    expect(() => new CallkeyClient()).to.throw(CallkeyError, 'options');
  });

  it('refuses a server to which the key would be sent unencrypted', () => {
    expect(() => connect({ server: 'http://calls.example.com' })).to.throw(CallkeyError, 'https');
  });

  it("refuses a mistyped key, and doesn't include it in the error", () => {
    const mistyped = its.key.slice(0, -1);
    expect(() => connect({ keyValue: mistyped }))
      .to.throw(CallkeyError, 'Invalid CallkeyClient options.')
      .with.property('message')
      .that.does.not.contain(mistyped);
  });
});
