import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { certificateAuthority, hasOpenssl } from '../support/certificate.ts';
import { openConsole, signInAs } from '../support/console-harness.ts';
import { startCoreHere } from '../support/core.ts';
import { describeDesktop, launchConsole } from '../support/electron.ts';
import { type Listening, listenHere } from '../support/listen.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce, skip } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

const html = { 'Content-Type': 'text/html' };

describeDesktop('the console, at sign-in,', () => {
  const harness = openOnce(() => openConsole());
  const servers: Listening[] = [];
  after(() => {
    for (const server of servers) void server.close();
  });

  async function submit(server: string, email: string, secret = password): Promise<void> {
    const { page } = harness;
    await page.getByLabel('Server address').fill(server);
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password').fill(secret);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  async function signOut(): Promise<void> {
    await harness.page.getByRole('button', { name: 'Sign out' }).click();
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
  }

  /** Starts a server that isn't a core, or is incompatible with this console. @returns its address */
  async function somethingElse(answer: RequestListener): Promise<string> {
    const server = await listenHere(createServer(answer));
    servers.push(server);
    return server.url;
  }

  /** Tries to sign in, and waits for a text that begins like this. */
  async function expectVerdict(address: string, says: string): Promise<void> {
    await submit(address, 'ada@example.com');
    await harness.page.getByText(new RegExp(`^${says.replace(/[.()?]/g, '\\$&')}`)).waitFor();
  }

  it("shows a form that doesn't scroll if the window is large enough", async () => {
    await harness.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    const [content, window] = await harness.page.evaluate(() => [document.documentElement.scrollHeight, innerHeight]);
    expect(content).to.equal(window);
  });

  it('says what to enter in every empty field', async () => {
    await submit('', '', '');
    await harness.page.getByText('Enter the address of your server.').waitFor();
    for (const label of ['Server address', 'Email', 'Password']) {
      await eventually(async () => expect(await harness.page.getByLabel(label).getAttribute('aria-invalid'), label).to.equal('true'));
    }
    await harness.page.getByLabel('Server address').and(harness.page.locator(':focus')).waitFor();
  });

  it('asks a server for its ways to sign in only once, however its address is then changed', async () => {
    const asked: string[] = [];
    const serve = (name: string) =>
      somethingElse((_, response) => {
        asked.push(name);
        response.writeHead(200, { 'Content-Type': 'application/json', 'Callkey-Contract': '1' }).end('{"password":true,"oidc":null}');
      });
    const [first, second] = [await serve('first'), await serve('second')];
    const address = harness.page.getByLabel('Server address');
    await address.fill(first);
    await address.blur();
    await eventually(async () => expect(asked).to.deep.equal(['first']));
    await address.pressSequentially('xyz');
    await address.fill(second);
    await address.blur();
    await eventually(async () => expect(asked).to.include('second'));
    expect(asked).to.deep.equal(['first', 'second']);
  });

  it('sends nothing over plain HTTP to another machine', async () => {
    await submit('http://calls.example.com', 'ada@example.com');
    await harness.page.getByText('would cross the network unencrypted').waitFor();
  });

  it('recognizes an older, incompatible core, and returns to the form', async () => {
    const url = await somethingElse((_, response) => response.writeHead(200, { 'Callkey-Contract': '0' }).end('{}'));
    await submit(url, 'ada@example.com');
    await harness.page.getByRole('heading', { name: 'This server is too old for this console' }).waitFor();
    await harness.page.getByRole('button', { name: 'Use another server' }).click();
    await eventually(async () => expect(await harness.page.getByLabel('Server address').inputValue()).to.equal(url));
    await eventually(async () => expect(await harness.page.getByLabel('Email').inputValue()).to.equal('ada@example.com'));
  });

  it('sends no password if the user cancels while the server is being identified', async () => {
    const { page, core, tenants } = harness;
    const network = await faultyProxy(core.url);
    const sent = (method: string) => network.seen.filter((request) => request.method === method).length;
    const { promise, resolve: release } = Promise.withResolvers<void>();
    network.faults.push({ path: '/console/', method: 'GET', fault: promise });
    const input = { server: network.url, email: tenants.users.account.email, password, keepSignedIn: false };
    const answer = page.evaluate((typed) => window.callkey.signIn(typed), input);
    await until(() => sent('GET') === 1);
    await page.evaluate(() => window.callkey.cancelSignIn());
    release();
    expect(await answer).to.deep.equal({ ok: false, failure: { kind: 'session-ended' } });
    expect(sent('POST')).to.equal(0);
    await network.close();
  });

  it('recognizes a login wall, says what to do, and sends it no secret', async () => {
    const seen: string[] = [];
    const url = await somethingElse(async (request, response) => {
      seen.push(`${request.method} ${request.url} ${await buffer(request)} ${request.headers.cookie ?? ''}`.trim());
      response.writeHead(200, html).end('<!doctype html><form><input name="user"><input type="password" name="pass"></form>');
    });
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
    const secure = await listenHere(createTlsServer(certificateAuthority(), (_, response) => response.end()));
    servers.push(secure);
    await expectVerdict(
      `http://127.0.0.1:${secure.port}`,
      'Can’t reach the server. The server closed the connection. If it uses HTTPS, enter https:// in front of its address.',
    );
    const plain = await somethingElse((_, response) => response.end());
    await expectVerdict(
      plain.replace('http:', 'https:'),
      'Can’t reach the server. The server doesn’t use HTTPS at this address. Try http://.',
    );
  });

  it("accepts a link from a browser's address bar, also under a path", async () => {
    const { page, core, tenants } = harness;
    const network = await faultyProxy(core.url, '/callkey');
    await submit(`${network.url}/callkey/#/api-keys?search=Blue`, tenants.users.account.email);
    await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
    expect((await page.evaluate(() => window.callkey.listServers()))[0]?.address).to.equal(`${network.url}/callkey`);

    // A maintenance page says nothing about the core's version, so the app waits for it to end.
    for (let index = 0; index < 3; index += 1) network.faults.push({ status: 200, headers: html, body: '<h1>Back soon</h1>' });
    await page.getByRole('link', { name: 'Activity', exact: true }).click();
    await page.getByText('A web page responded instead of a Callkey server.').first().waitFor();
    expect(await page.getByRole('alertdialog').count()).to.equal(0);
    await page.getByRole('row', { name: 'Signed in' }).first().waitFor();
    await signOut();
    await network.close();
  });

  it("remembers only the server's address and the email address for the next start", async () => {
    await signInAs(harness, 'account');
    const { userData } = harness.desktop;
    await harness.desktop.close();
    const settings = JSON.parse(readFileSync(join(userData, 'settings.json'), 'utf8'));
    expect(Object.keys(settings).toSorted()).to.deep.equal(['notified', 'notifiesExpiry', 'servers', 'unsaved', 'window']);
    expect(settings.servers[0]).to.deep.equal({ address: harness.core.url, email: harness.tenants.users.account.email });
    const again = await launchConsole({ userData });
    await again.page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    await eventually(async () => expect(await again.page.getByLabel('Server address').inputValue()).to.equal(harness.core.url));
    await eventually(async () => expect(await again.page.getByLabel('Email').inputValue()).to.equal(harness.tenants.users.account.email));
    await eventually(async () => expect(await again.page.getByLabel('Password').inputValue()).to.equal(''));
    await again.close();
  });
});
