import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { fillInKey, signInAs } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { chooseButton, describeDesktop, launchConsole, listQuestions } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce } from '../support/suites.ts';
import { enroll, password, signIn } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

describeDesktop('the console on a managed computer', () => {
  const harness = openOnce(() => openCore());
  const desktop = openOnce(() => {
    const folder = join(freshDirectory(), 'callkey');
    mkdirSync(folder);
    const settings = { server: harness.core.url, keepSignedIn: false, signOutAfterMinutes: 5 };
    writeFileSync(join(folder, 'console.json'), JSON.stringify(settings));
    const userData = freshDirectory();
    writeFileSync(join(userData, 'session'), 'stored before the administrator turned it off');
    return launchConsole({ userData, env: { XDG_CONFIG_DIRS: join(folder, '..'), CHOSEN_BUTTON: 'Cancel' } });
  });

  it("offers the administrator's server, doesn't offer to keep the session, and deletes the one it kept before", async () => {
    const { page } = desktop;
    await eventually(async () => expect(await page.getByLabel('Server address').inputValue()).to.equal(harness.core.url));
    await page.getByText('Your administrator has turned this off.').waitFor();
    expect(await page.getByLabel('Keep me signed in').isDisabled()).to.equal(true);
    await eventually(async () => expect(existsSync(join(desktop.userData, 'session'))).to.equal(false));
  });

  it("opens links to the administrator's server without asking, but asks about others", async () => {
    const { page } = desktop;
    const follow = (server: string) => page.evaluate((link) => window.callkey.readLink(link), `${server}/#/calls`);
    expect((await follow(harness.core.url)).ok).to.equal(true);
    expect((await follow('http://127.0.0.1:1')).ok).to.equal(false);
    expect(await listQuestions(desktop)).to.have.length(1);
  });

  it('shows the versions of the app and the server', async () => {
    const { page } = desktop;
    await signInAs({ ...harness, page }, 'account');
    await page.getByRole('button', { name: 'Help' }).click();
    await page.getByText(/^App \d+\.\d+\.\d+ · Server \d+\.\d+\.\d+$/).waitFor();
    await page.keyboard.press('Escape');
  });

  it('signs out of all servers when no one uses the computer, even while a key value is visible', async () => {
    const { page, app } = desktop;
    const sessions = async () => (await harness.direct.storage.database.read('sessions').select('id')).length;
    await fillInKey(page, 'Left alone', 'No expiration');
    await page.getByRole('button', { name: 'Create Key' }).click();
    const keyValue = await page.getByLabel('Key value').inputValue();
    const { email } = harness.tenants.users.account;
    const network = await faultyProxy(harness.core.url);
    await chooseButton(desktop, 'Connect');
    await page.evaluate((input) => window.callkey.signIn(input), { server: network.url, email, password, keepSignedIn: false });
    expect(await sessions(), 'at two addresses').to.equal(2);
    await app.evaluate(({ powerMonitor }) => {
      powerMonitor.getSystemIdleTime = () => 300;
    });
    await page.getByRole('alert').getByText('You were signed out because you weren’t using this computer.').waitFor();
    const told = async () => (await listQuestions(desktop)).at(-1)?.detail;
    await eventually(async () => expect(await told()).to.include('The value of the API key “Left alone” was on screen'));
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(await page.content()).not.to.include(keyValue);
    await eventually(async () => expect(await sessions()).to.equal(0));
    await network.close();
  });

  it('then also ends a sign-in that waits for a code', async () => {
    const { page, app } = desktop;
    const { core, tenants } = harness;
    const { email } = tenants.users.partner;
    const setIdle = (seconds: number) =>
      app.evaluate(({ powerMonitor }, idle) => {
        Object.assign(globalThis, { checks: 0 });
        powerMonitor.getSystemIdleTime = () => {
          Reflect.set(globalThis, 'checks', Reflect.get(globalThis, 'checks') + 1);
          return idle;
        };
      }, seconds);
    await setIdle(0);
    const { app: authenticatorApp } = await enroll(core.url, await signIn(core.url, email));
    const input = { server: core.url, email, password, keepSignedIn: false };
    expect(await page.evaluate((typed) => window.callkey.signIn(typed), input)).to.deep.equal({ ok: true, value: { secondFactor: true } });
    await setIdle(300);
    await until(() => app.evaluate(() => Reflect.get(globalThis, 'checks') > 0));
    const answer = await page.evaluate((code) => window.callkey.enterCode(code), authenticatorApp.code(1));
    expect(answer).to.have.nested.property('failure.detail', 'This sign-in was cancelled. Go back and start again.');
  });
});
