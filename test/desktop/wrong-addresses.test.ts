import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { certificateAuthority, hasOpenssl } from '../support/certificate.ts';
import { openConsole } from '../support/console-harness.ts';
import { startCoreHere } from '../support/core.ts';
import { describeDesktop } from '../support/electron.ts';
import { listenHere } from '../support/listen.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce, skip } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

const html = { 'Content-Type': 'text/html' };

describeDesktop('the console, at a wrong address,', () => {
  const harness = openOnce(() => openConsole());
  const closing: (() => Promise<void>)[] = [];
  after(() => Promise.all(closing.map((close) => close())));

  async function listen(server: Server): Promise<string> {
    const { port, close } = await listenHere(server);
    closing.push(close);
    return `127.0.0.1:${port}`;
  }

  /** Tries to sign in, and waits for a text that begins like this. */
  async function expectVerdict(address: string, says: string): Promise<void> {
    const { page } = harness;
    await page.getByLabel('Server address').fill(address);
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(new RegExp(`^${says.replace(/[.()?]/g, '\\$&')}`)).waitFor();
  }

  it('recognizes a login wall, says what to do, and sends it no secret', async () => {
    const seen: string[] = [];
    const url = await listen(
      createServer(async (request, response) => {
        seen.push(`${request.method} ${request.url} ${await buffer(request)} ${request.headers.cookie ?? ''}`.trim());
        response.writeHead(200, html).end('<!doctype html><form><input name="user"><input type="password" name="pass"></form>');
      }),
    );
    await expectVerdict(url, 'A sign-in page responded instead of a Callkey server.');
    expect(new Set(seen)).to.deep.equal(new Set(['GET /console/sign-in']));
  });

  it('recognizes the management address, and a path that leads nowhere on a core', async () => {
    const managed = await startCoreHere(harness.database);
    await expectVerdict(managed.managementUrl ?? '', 'This is the management address of a Callkey server');
    await managed.close();
    await expectVerdict(`${harness.core.url}/v2/console`, `A Callkey server responded, but not under this path. Try ${harness.core.url}`);
  });

  it('recognizes a port with TLS from its plain address, and one without TLS from its https address', async function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const secure = await listen(createTlsServer(certificateAuthority(), (_, response) => response.end()));
    await expectVerdict(
      `http://${secure}`,
      'Can’t reach the server. The server closed the connection. If it uses HTTPS, enter https:// in front of its address.',
    );
    const plain = await listen(createServer((_, response) => response.end()));
    await expectVerdict(`https://${plain}`, 'Can’t reach the server. The server doesn’t use HTTPS at this address. Try http://.');
  });

  it("accepts a link from a browser's address bar, also under a path", async () => {
    const { page, core, tenants } = harness;
    const network = await faultyProxy(core.url, '/callkey');
    await page.getByLabel('Server address').fill(`${network.url}/callkey/#/api-keys?search=Blue`);
    await page.getByLabel('Email').fill(tenants.users.account.email);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
    expect((await page.evaluate(() => window.callkey.listServers()))[0]?.address).to.equal(`${network.url}/callkey`);

    // A maintenance page says nothing about the core's version, so the app waits for it to end.
    for (let index = 0; index < 3; index += 1) network.faults.push({ status: 200, headers: html, body: '<h1>Back soon</h1>' });
    await page.getByRole('link', { name: 'Activity', exact: true }).click();
    await page.getByText('A web page responded instead of a Callkey server.').first().waitFor();
    expect(await page.getByRole('alertdialog').count()).to.equal(0);
    await page.getByRole('row', { name: 'Signed in' }).first().waitFor();
    await network.close();
    await eventually(async () => expect(network.faults).to.deep.equal([]));
  });
});
