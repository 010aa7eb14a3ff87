import { sign } from '#contract/calls/signature.ts';
import { type RunningCore, startCoreHere } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { type Answer, ask } from './http.ts';
import { signingSecret, startReceiver } from './receiver.ts';
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
} from './tenants.ts';
import { until } from './until.ts';

/** The core accepts outcomes that are signed with this secret, but signs nothing with it. */
export const olderSecret = `whsec_${'old1'.repeat(10)}`;

type Environment = Record<string, string>;
type Receive = Parameters<typeof startReceiver>[0];
type Signed = { with?: string; at?: number; [header: `webhook-${string}`]: string };

/** Gives each test a database with tenants and, once it calls `start`, a provider and a core that dials through it. */
export function dialerForEach(kind: DatabaseKind) {
  let database: string;
  let core: RunningCore;
  let direct: DirectAccess;
  let tenants: Tenants;
  let key: string;
  let cookie: string;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;

  beforeEach(async () => {
    ({ database, tenants } = await databaseWithTenants(kind));
    direct = await openDirect(database);
  });
  afterEach(async () => {
    await core.close();
    await receiver.close();
    await direct.close();
  });

  const call = async (contactId: string): Promise<Record<string, unknown>> =>
    (await direct.storage.database.read('calls').where({ contact_id: contactId }).first()) ?? {};
  return {
    get core() {
      return core;
    },
    get direct() {
      return direct;
    },
    get tenants() {
      return tenants;
    },
    get cookie() {
      return cookie;
    },
    get receiver() {
      return receiver;
    },
    /** Starts the provider and the core, and creates a key. */
    async start(environment: Environment = {}, answer?: Receive): Promise<void> {
      receiver = await startReceiver(answer);
      const webhook = { DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: `${signingSecret},${olderSecret}` };
      core = await startCoreHere(database, { environment: { ...webhook, ...environment } });
      cookie = await signIn(core.url, 'ada@example.com');
      key = (await createKey(core.url, cookie)).keyValue;
    },
    place: (body: object = {}): Promise<Answer> =>
      placeCall(core.url, tenants.campaign.id, key, { contact: { phone: somePhone() }, ...body }),
    cancel: (contactId: string): Promise<Answer> => ask('DELETE', `${onDemand(core.url, tenants.campaign.id)}/${contactId}`, { key }),
    /** The call's row. */
    call,
    /** Waits until the call is in one of these states. */
    async untilState(contactId: string, ...states: string[]) {
      await until(async () => states.includes(String((await call(contactId))['state'])));
      return call(contactId);
    },
    /** Reports an outcome as the provider. @param body text is sent as it is */
    outcome(
      body: object | string,
      { with: by = signingSecret, at = Math.floor(Date.now() / 1_000), ...headers }: Signed = {},
    ): Promise<Answer> {
      const raw = typeof body === 'string' ? body : JSON.stringify(body);
      return ask('POST', `${core.url}/dialer/outcomes`, { raw, headers: { ...sign('any', raw, by, at), ...headers } });
    },
  };
}
