import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { spawnScript } from '../support/commands.ts';
import { spawnCore } from '../support/core.ts';
import { signingSecret } from '../support/provider.ts';
import { skip } from '../support/suites.ts';
import { createKey, databaseWithTenants, placeCall, signIn } from '../support/tenants.ts';

/** Makes Node.js accept any certificate, unless a program verifies it nonetheless. */
const unchecked = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };

describe('with NODE_TLS_REJECT_UNAUTHORIZED=0 (needs openssl)', () => {
  let certificate: { cert: Buffer; key: Buffer };
  let stranger: Server;

  before(function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const { TLS_CERT_FILE, TLS_KEY_FILE } = selfSignedCertificate();
    certificate = { cert: readFileSync(TLS_CERT_FILE), key: readFileSync(TLS_KEY_FILE) };
  });
  afterEach(() => stranger?.close());

  const listen = async (server: Server): Promise<number> => {
    stranger = server.listen(0, 'localhost');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };

  it("a core doesn't hand off calls to a provider with an untrusted certificate, and says so", async () => {
    const requests: unknown[] = [];
    const provider = createHttpsServer(certificate, (request, response) => {
      requests.push(request.url);
      response.writeHead(202).end();
    });
    const tried = Promise.race([once(provider, 'tlsClientError'), once(provider, 'request')]);
    const port = await listen(provider);
    const { database, tenants } = await databaseWithTenants('sqlite');
    const webhook = { DIALER: 'webhook', DIALER_URL: `https://localhost:${port}/`, DIALER_SECRETS: signingSecret };
    const core = await spawnCore(database, { ...unchecked, ...webhook });
    const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
    await placeCall(core.url, tenants.campaign.id, keyValue);
    await tried;
    await core.stop();
    expect(requests).to.deep.equal([]);
    const warnings = core.stdout.map((line) => JSON.parse(line)).filter(({ msg }) => /NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored/.test(msg));
    expect(warnings.map(({ level }) => level)).to.deep.equal(['warn']);
  });

  it("the core and admin don't send their password to a database server with an untrusted certificate", async () => {
    const told: string[] = [];
    const server = createServer((socket: Socket) => {
      socket.on('error', () => undefined);
      // The client sends PostgreSQL's SSLRequest, and the server says yes.
      socket.once('data', () => {
        socket.write('S');
        const secure = new TLSSocket(socket, { isServer: true, ...certificate });
        secure.on('error', () => undefined).on('data', (data) => told.push(data.toString()));
      });
    });
    const port = await listen(server);
    const env = {
      ...unchecked,
      ...{ DATABASE_URL: `postgres://callkey:canary@localhost:${port}/callkey?sslmode=require`, SESSION_SECRETS: 'x'.repeat(32) },
    };
    for (const [script, ...args] of [['core/main.ts'], ['core/admin.ts', 'check']] as const) {
      const { code, stdout, stderr } = await spawnScript(script, args, { env });
      expect([code, /certificate/.test(stdout + stderr), told], stdout + stderr).to.deep.equal([1, true, []]);
    }
  });
});
