import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeManaged } from '../../core/domain/directory/directory.ts';
import { freePort } from '../../scripts/support/postgres.ts';
import { bareEnvironment } from '../support/commands.ts';
import { openCore } from '../support/core.ts';
import { openEvents, type ProviderRequest, signingSecret, startProviderApi } from '../support/provider.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, restoreForEach, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the recipe for', () => {
  const its = openOnce(async () => {
    const api = await startProviderApi();
    // A recipe has this port for as long as its tests run.
    const port = String(await freePort(10_000));
    const recipeUrl = `http://127.0.0.1:${port}`;
    const environment = { DIALER: 'webhook', DIALER_URL: `${recipeUrl}/`, DIALER_SECRETS: signingSecret };
    const harness = await openCore({ environment });
    const { keyValue: key } = await createKey(harness.core.url, await signIn(harness.core.url, 'ada@example.com'));
    return { ...harness, api, port, recipeUrl, key, close: () => harness.close().finally(api.close) };
  });
  restoreForEach(() => its.direct);
  beforeEach(() => {
    its.api.requests.length = 0;
    its.api.statuses.length = 0;
    its.api.resources = { '/ari/channels': [] };
  });

  const place = async (requestId: string, variables: Record<string, string> = {}) => {
    const body = { requestId, contact: { phone: '+493012345678', name: 'Ada' }, variables };
    expect((await placeCall(its.core.url, its.tenants.campaign.id, its.key, body)).status).to.equal(202);
  };
  const setSettings = (settings: Record<string, string>) =>
    changeManaged(its.direct.ports, operator, 'campaign', its.tenants.campaign.id, { settings });

  /** Runs a recipe, to which the core hands its calls off, for the tests of a suite. */
  function runRecipe(name: string, getEnvironment: () => Record<string, string>, ready = 'waiting for hand-offs') {
    let recipe: ChildProcess;
    async function start(): Promise<void> {
      const settings = { PORT: its.port, CALLKEY_SERVER: its.core.url, DIALER_SECRETS: signingSecret };
      recipe = spawn(process.execPath, [`scripts/providers/${name}.ts`], {
        env: { ...bareEnvironment, ...settings, ...getEnvironment() },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const { stdout } = recipe;
      if (!stdout) throw new Error('The recipe has no output.');
      await new Promise<void>((resolve) => {
        createInterface({ input: stdout }).on('line', (line) => {
          if (line.includes(ready)) resolve();
        });
      });
    }
    async function kill(): Promise<void> {
      recipe.kill('SIGKILL');
      await once(recipe, 'exit');
    }
    before(start);
    after(kill);
    return { start, kill };
  }

  const findRow = (requestId: string) =>
    its.direct.storage.database
      .read('calls')
      .where({ request_id: requestId })
      .first('state', 'detail', 'duration_seconds as seconds', 'answered_by as answeredBy');
  const findHandoff = (requestId: string) => its.direct.storage.database.read('calls').where({ request_id: requestId }).first('handoff');
  /** Waits for a call's state. @returns the stored call */
  async function ended(requestId: string, state: string) {
    await until(async () => (await findRow(requestId))?.state === state);
    return findRow(requestId);
  }
  /** Waits for the next request to the provider. */
  async function nextRequest(count: number): Promise<ProviderRequest> {
    await until(() => its.api.requests.length >= count);
    const request = its.api.requests[count - 1];
    if (!request) throw new Error('The provider got no request.');
    return request;
  }
  const reportTo = async (path: string, headers: Record<string, string>, body: string) =>
    (await fetch(`${its.recipeUrl}${path}`, { method: 'POST', headers, body })).status;

  const twilio = {
    TWILIO_ACCOUNT_SID: 'AC1',
    TWILIO_AUTH_TOKEN: 'token',
    TWILIO_FROM: '+15005550006',
    TWILIO_STREAM_URL: 'wss://agent.example/stream',
    PUBLIC_URL: 'https://calls.example',
  };
  const signedByTwilio = (text: string, token = twilio.TWILIO_AUTH_TOKEN) => ({
    'X-Twilio-Signature': createHmac('sha1', token).update(text).digest('base64'),
  });

  describe('Twilio', () => {
    runRecipe('twilio', () => ({ ...twilio, TWILIO_API: its.api.url }));

    it('places the call with its variables as parameters, and accepts only outcomes signed by Twilio', async () => {
      await place('one', { 'order">': `<Say>&'"` });
      const { path, headers, body } = await nextRequest(1);
      const fields = Object.fromEntries(new URLSearchParams(body));
      const handoff = new URL(fields['StatusCallback'] ?? '').searchParams.get('handoffId');
      expect([path, headers.authorization]).to.deep.equal(['/2010-04-01/Accounts/AC1/Calls.json', `Basic ${btoa('AC1:token')}`]);
      const callback = `/outcomes?handoffId=${handoff}`;
      const callbackUrl = `https://calls.example${callback}`;
      expect(fields).to.deep.include({ To: '+493012345678', From: '+15005550006', StatusCallback: callbackUrl });
      expect(fields).to.deep.include({ MachineDetection: 'Enable', AsyncAmd: 'true', AsyncAmdStatusCallback: callbackUrl });
      expect(fields['Twiml']).to.equal(
        '<Response><Connect><Stream url="wss://agent.example/stream">' +
          '<Parameter name="order&#34;&#62;" value="&#60;Say&#62;&#38;&#39;&#34;"/>' +
          `<Parameter name="handoffId" value="${handoff}"/></Stream></Connect></Response>`,
      );
      const outcome = 'CallStatus=completed&CallDuration=62&CallSid=CA1';
      const signed = `https://calls.example${callback}CallDuration62CallSidCA1CallStatuscompleted`;
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
      expect(await reportTo(callback, { ...form, ...signedByTwilio(signed, 'another') }, outcome)).to.equal(401);
      expect((await findRow('one'))?.state).to.equal('dialing');
      expect(await reportTo(callback, { ...form, ...signedByTwilio(signed) }, outcome)).to.equal(204);
      expect(await ended('one', 'completed')).to.deep.include({ detail: 'Twilio: completed', seconds: 62, answeredBy: null });
    });

    it('keeps the reason for a refused call, retries when rate-limited, and never repeats a call in doubt', async () => {
      its.api.statuses.push(400);
      await place('refused');
      expect((await ended('refused', 'failed'))?.detail).to.contain('the number is not valid');
      its.api.statuses.push(429, [400, '{"code":21210,"message":"not verified"}'], [400, '{"code":22005,"message":"Call Queue Full"}']);
      await place('too-much');
      await nextRequest(5);
      for (const status of [500, 502, 503]) {
        its.api.statuses.push(status);
        await place(`in-doubt-${status}`);
        await ended(`in-doubt-${status}`, 'unknown');
      }
      expect(its.api.requests.length).to.equal(8);
      expect(await reportTo('/', {}, '{}')).to.equal(401);
    });

    it('keeps running if a stranger hangs up in the middle of a report, or sends a very long one', async () => {
      const stranger = connect(Number(new URL(its.recipeUrl).port), '127.0.0.1');
      stranger.end('POST /outcomes HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na');
      await once(stranger.resume(), 'close');
      expect(await reportTo('/outcomes', {}, 'a'.repeat(1_000_001))).to.equal(401);
      await place('one');
      await nextRequest(1);
    });
  });

  describe('Twilio, without detecting machines', () => {
    runRecipe('twilio', () => ({ ...twilio, TWILIO_API: its.api.url, TWILIO_MACHINE_DETECTION: 'off' }));

    it("reports who answered, and uses a campaign's number and agent", async () => {
      await setSettings({ from: '+15005550009', agent: 'wss://other.example/' });
      for (const [n, [answerer, status, state, answeredBy]] of (
        [
          ['human', 'completed', 'completed', 'person'],
          ['machine_start', 'completed', 'completed', 'machine'],
          ['fax', 'completed', 'completed', 'machine'],
          ['unknown', 'completed', 'completed', 'unknown'],
          ['unknown', 'no-answer', 'no_answer', null],
        ] as const
      ).entries()) {
        await place(`call-${n}`);
        const fields = Object.fromEntries(new URLSearchParams((await nextRequest(n + 1)).body));
        expect([fields['From'], fields['MachineDetection']]).to.deep.equal(['+15005550009', undefined]);
        expect(fields['Twiml']).to.contain('<Stream url="wss://other.example/">');
        const callback = new URL(fields['StatusCallback'] ?? '');
        const path = `${callback.pathname}${callback.search}`;
        const reportFields = (name: string, value: string) =>
          reportTo(path, signedByTwilio(`${callback.href}${name}${value}`), `${name}=${value}`);
        expect(await reportFields('AnsweredBy', answerer)).to.equal(204);
        expect((await findRow(`call-${n}`))?.state).to.equal('dialing');
        expect(await reportFields('CallStatus', status)).to.equal(204);
        expect((await ended(`call-${n}`, state))?.answeredBy).to.equal(answeredBy);
      }
    });
  });

  describe('Retell', () => {
    const settings = { RETELL_API_KEY: 'key_1', RETELL_FROM: '+15005550006', RETELL_AGENT_ID: 'agent_1' };
    runRecipe('retell', () => ({ ...settings, RETELL_API: its.api.url }));

    it('places the call with its variables, and accepts only outcomes signed by Retell', async () => {
      await place('one', { order: '4711' });
      const { path, headers, body } = await nextRequest(1);
      const handoff: string = JSON.parse(body).metadata.handoffId;
      expect([path, headers.authorization, JSON.parse(body)]).to.deep.equal([
        '/v2/create-phone-call',
        'Bearer key_1',
        {
          from_number: '+15005550006',
          to_number: '+493012345678',
          override_agent_id: 'agent_1',
          metadata: { handoffId: handoff },
          retell_llm_dynamic_variables: { order: '4711', contact_name: 'Ada' },
        },
      ]);
      const report = (event: string, key: string, time = Date.now(), call = handoff, disconnection_reason = 'dial_no_answer') => {
        const body = JSON.stringify({ event, call: { metadata: { handoffId: call }, disconnection_reason, duration_ms: 0 } });
        const digest = createHmac('sha256', key).update(`${body}${time}`).digest('hex');
        return reportTo('/outcomes', { 'X-Retell-Signature': `v=${time},d=${digest}` }, body);
      };
      const answers = [await report('call_ended', 'another'), await report('call_ended', 'key_1', Date.now() - 600_000)];
      answers.push(await report('call_started', 'key_1'));
      expect([answers, (await findRow('one'))?.state]).to.deep.equal([[401, 401, 204], 'dialing']);
      expect(await report('call_ended', 'key_1')).to.equal(204);
      expect(await ended('one', 'no_answer')).to.deep.include({ detail: 'Retell: dial_no_answer', answeredBy: null });
      await setSettings({ from: '+15005550009', agent: 'agent_2' });
      for (const [n, [reason, answeredBy]] of (
        [
          ['voicemail_reached', 'machine'],
          ['user_hangup', 'unknown'],
        ] as const
      ).entries()) {
        await place(reason);
        const request = JSON.parse((await nextRequest(n + 2)).body);
        expect(request).to.include({ from_number: '+15005550009', override_agent_id: 'agent_2' });
        expect(await report('call_ended', 'key_1', Date.now(), request.metadata.handoffId, reason)).to.equal(204);
        expect((await ended(reason, 'completed'))?.answeredBy).to.equal(answeredBy);
      }
    });
  });

  describe('Asterisk', () => {
    const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 9, 0, second)).toISOString().replace('Z', '+0000');
    const destroyed = (id: string, second: number, cause: number, state = 'Up') => ({
      ...{ type: 'ChannelDestroyed', timestamp: at(second), channel: { id, state }, cause },
      cause_txt: cause === 17 ? 'User busy' : 'Normal Clearing',
    });
    const dial = (id: string, second: number, dialstatus: string, state = 'Down') => ({
      ...{ type: 'Dial', timestamp: at(second), dialstatus, peer: { id, state } },
    });
    const settings = { ARI_USER: 'callkey', ARI_PASSWORD: 'pw', ARI_ENDPOINT: 'PJSIP/{phone}@trunk', ARI_CALLER_ID: '+15005550006' };
    /** The recipe connects to the events when it starts. */
    let opening: ReturnType<typeof openEvents>;
    before(() => {
      opening = openEvents(its.api.server);
    });
    const { start, kill } = runRecipe(
      'asterisk',
      () => ({ ...settings, ARI_CONTEXTS: 'another, other', ARI_URL: `${its.api.url}/ari`, ARI_RING_SECONDS: '30' }),
      'following Asterisk',
    );
    after(async () => (await opening).end());
    const send = async (event: object | string) => (await opening).send(event);
    const readChannel = async (count: number): Promise<string> => JSON.parse((await nextRequest(count)).body).channelId;

    it("connects an answered call to the dialplan, doesn't run functions named in variables, and reports how the call ended", async () => {
      await place('one', { order: '4711', 'SHELL(reboot)': 'x' });
      const { path, headers, body } = await nextRequest(1);
      const id: string = JSON.parse(body).channelId;
      expect([path, headers.authorization]).to.deep.equal(['/ari/channels', `Basic ${btoa('callkey:pw')}`]);
      expect(JSON.parse(body)).to.deep.equal({
        ...{ endpoint: 'PJSIP/+493012345678@trunk', context: 'callkey', extension: 's', priority: 1, channelId: id },
        ...{ timeout: 30, callerId: '+15005550006', variables: { CALLKEY_order: '4711', CALLKEY_HANDOFF_ID: id } },
      });
      await send(destroyed('1795500000.1', 0, 16));
      // An unreadable event doesn't end a call.
      for (const message of ['{', '[]', '{"type":5}']) await send(message);
      await send(dial(id, 0, 'ANSWER', 'Up'));
      await send(destroyed(id, 62, 16));
      expect(await ended('one', 'completed')).to.deep.include({ detail: 'Asterisk: 16 Normal Clearing ANSWER', seconds: 62 });
      await setSettings({ from: '+15005550009', agent: 'other' });
      await place('two');
      const second = await readChannel(2);
      expect(JSON.parse(its.api.requests[1]?.body ?? '')).to.include({ context: 'other', callerId: '+15005550009' });
      await setSettings({ agent: 'from-internal' });
      await place('elsewhere');
      const why = "The provider returned 503: ARI_CONTEXTS doesn't list the campaign's agent: from-internal";
      await until(async () => (await findRow('elsewhere'))?.detail === why);
      expect(its.api.requests).to.have.length(2);
      await send(dial(second, 62, 'BUSY'));
      await send(destroyed(second, 62, 0, 'Down'));
      expect(await ended('two', 'busy')).to.deep.include({ seconds: 0 });
    });

    it("asks for a retry if Asterisk couldn't create a channel, accepts a repeated hand-off in progress, and doesn't retry other errors", async () => {
      its.api.statuses.push([500, '{"error":"Allocation failed"}'], [409, '{"message":"Channel with given unique ID already exists"}']);
      await place('one');
      const id = await readChannel(2);
      expect(await readChannel(1)).to.equal(id);
      await until(async () => (await findHandoff('one'))?.handoff === 'taken');
      await send(destroyed(id, 0, 17, 'Down'));
      await ended('one', 'busy');
      // Other errors may occur after the call was made.
      its.api.statuses.push(500);
      await place('two');
      await ended('two', 'unknown');
      expect(its.api.requests).to.have.length(3);
    });

    it("follows its calls again after a restart, and doesn't call anyone twice", async () => {
      await place('talking');
      const id = await readChannel(1);
      await until(async () => (await findHandoff('talking'))?.handoff === 'taken');
      await kill();
      (await opening).end();
      // This call is due while the recipe isn't running.
      await place('waiting');
      await until(async () => (await findHandoff('waiting'))?.handoff === 'retry');
      expect((await findRow('waiting'))?.detail).to.equal("The provider couldn't be reached: connection refused.");
      its.api.resources['/ari/channels'] = [
        { id, state: 'Up' },
        { id: `${id};2`, state: 'Up' },
        { id: 'someone-else', state: 'Up' },
      ];
      its.api.resources[`/ari/channels/${id}/variable?variable=CALLKEY_HANDOFF_ID`] = { value: id };
      opening = openEvents(its.api.server);
      await start();
      await send(destroyed('someone-else', 62, 16));
      await send(destroyed(id, 62, 16));
      expect(await ended('talking', 'completed')).to.deep.include({ detail: 'Asterisk: 16 Normal Clearing', seconds: null });
      const waiting = await readChannel(2);
      await send(destroyed(waiting, 63, 17, 'Down'));
      await ended('waiting', 'busy');
      expect(its.api.requests).to.have.length(2);
    });
  });
});
