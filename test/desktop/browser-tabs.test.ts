import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Dialog } from 'playwright-core';
import { operator } from '../../core/domain/audit/audit.ts';
import { resetPassword } from '../../core/domain/directory/users.ts';
import { browserForEach, describeBrowser, holdResponse, readHeap, settle, untilSessionIsReadAgain } from '../support/browser.ts';
import { showOneTimePasswords } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually } from '../support/until.ts';

describeBrowser('the console in a browser', () => {
  const browser = browserForEach();
  const { button, goHomeFromCalls, signInOnForm, open, clipboardText, createKey } = browser;

  describe('a secret', () => {
    it("isn't lost by Escape, even twice, a click on the backdrop, Back or leaving the page: the console asks first", async () => {
      await open();
      await goHomeFromCalls();
      const keyValue = await createKey();
      const { page } = browser;
      for (const dismiss of [
        () => page.keyboard.press('Escape'),
        () => page.keyboard.press('Escape').then(() => page.keyboard.press('Escape')),
        () => page.mouse.click(5, 5),
        () => page.goBack(),
      ]) {
        await dismiss();
        await page.getByText('Close without saving?').waitFor();
        await button('Go back').click();
        await eventually(async () => expect(await page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      }
      const asked = browser.page.waitForEvent('dialog');
      const left = browser.page.goto('about:blank').catch((error: Error) => error.message);
      const question: Dialog = await asked;
      expect(question.type()).to.equal('beforeunload');
      await question.dismiss();
      expect(await left).to.include('ERR_ABORTED');
      await eventually(async () => expect(await browser.page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await browser.page.keyboard.press('Escape');
      await button('Close without saving').click();
      await browser.page.goto('about:blank');
    });

    it("can be copied, says that the page can't clear the clipboard, and is selected for copying by hand if the browser blocks that", async () => {
      await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
      await open();
      const keyValue = await createKey();
      await browser.page.getByText('a web page can’t clear your clipboard.').first().waitFor();
      await button('Copy').click();
      await button('Copied').waitFor();
      expect(await clipboardText()).to.equal(keyValue);
      await browser.page.bringToFront();
      await browser.page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))");
      await button('Copied').click();
      await browser.page.getByText('Your browser blocked copying.').waitFor();
      expect(await browser.page.evaluate('getSelection().toString()')).to.equal(keyValue);
    });

    it("is gone from storage, address, history, log and heap after its dialog is closed, whether it's a key value or a one-time password, of a new user or after a reset", async () => {
      await open(browser.harness.core.url, 'partner');
      const secret = (await createKey()).slice('svc_sk_live_'.length);
      const field = await browser.page.getByLabel('Key value').elementHandle();
      await button("I've Saved It").click();
      await browser.page.getByText(/^Canary( …\w+)? is ready to use\.$/).waitFor();
      expect(await field?.inputValue(), 'the field, which the browser may keep for a while').to.equal('');
      await field?.dispose();
      const secrets = [secret, ...(await showOneTimePasswords(browser.page, 'Blue Clinic'))];
      const places = await browser.page.evaluate(async () => [
        { ...localStorage },
        { ...sessionStorage },
        await indexedDB.databases(),
        await caches.keys(),
        history.state,
        location.href,
        document.documentElement.outerHTML,
      ]);
      expect(places.slice(0, 4)).to.deep.equal([{}, {}, [], []]);
      const [texts, log] = [places, browser.harness.core.log].map((each) => JSON.stringify(each));
      const everywhere = { texts, log, heap: await readHeap(browser.page) };
      for (const each of secrets)
        for (const [where, content] of Object.entries(everywhere)) expect(content?.includes(each), where).to.equal(false);
    });
  });

  describe('several tabs', () => {
    it('share a session: signing in, selecting a tenancy and signing out show up in all of them', async () => {
      const other = await browser.context.newPage();
      await other.goto(browser.harness.core.url);
      await other.getByLabel('Email').waitFor();
      // A background tab draws, and therefore responds, only once per second.
      await browser.page.bringToFront();
      await signInOnForm('staff');
      await other.bringToFront();
      await other.getByText('Choose an account or partner first').waitFor();
      await browser.page.bringToFront();
      await button('Choose').click();
      await browser.page.getByRole('dialog').getByRole('combobox').fill('blue');
      await browser.page.getByRole('option', { name: /Blue Clinic/ }).click();
      await other.bringToFront();
      await other.getByRole('button', { name: /Blue Clinic/ }).waitFor();
      await browser.page.bringToFront();
      await button('Sign out').click();
      await other.bringToFront();
      await other.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
    });

    it('each act in the tenancy that they show, even after another tab has selected a different tenancy', async () => {
      await open(browser.harness.core.url, 'staff');
      await button('Choose').click();
      await browser.page.getByRole('dialog').getByRole('combobox').fill('blue');
      await browser.page.getByRole('option', { name: /Blue Clinic/ }).click();
      await browser.row('Practice software').waitFor();
      // This simulates another tab whose message hasn't arrived here yet.
      const { write } = browser.harness.direct.storage.database;
      await write('sessions')
        .where({ user_id: browser.harness.tenants.users.staff.id })
        .update({ tenancy_kind: 'partner', tenancy_id: browser.harness.tenants.otherPartner.id });
      await createKey();
      await button("I've Saved It").click();
      await browser.row(/Canary .*You/).waitFor();
      await eventually(async () => expect(await browser.row('Practice software').count()).to.equal(1));
      const [canary] = await write('api_keys').where({ name: 'Canary', creator_id: browser.harness.tenants.users.staff.id });
      expect(canary?.account_id).to.equal(browser.harness.tenants.account.id);
    });

    it("can show two customers at the same time, and each tab changes only its own customer's data, even after a reload", async () => {
      const { account, otherPartner } = browser.harness.tenants;
      await createKeyOn(browser.harness, browser.harness.tenants.users.other, 'Key of the other');
      await open(`${browser.harness.core.url}/#/api-keys?tenancy=account/${account.id}`, 'staff');
      await browser.row('Practice software').waitFor();
      const other = await browser.context.newPage();
      await other.goto(`${browser.harness.core.url}/#/api-keys?tenancy=partner/${otherPartner.id}`);
      const row = other.getByRole('row', { name: 'Key of the other' });
      await row.waitFor();
      await browser.page.bringToFront();
      await browser.page.reload();
      await browser.row('Practice software').waitFor();
      await other.bringToFront();
      await other.getByRole('button', { name: 'Refresh' }).click();
      await settle(other);
      expect(await other.getByRole('row', { name: 'Practice software' }).count()).to.equal(0);
      // The session itself has the first tab's customer selected.
      await other.getByRole('link', { name: 'Activity' }).click();
      const exported = other.waitForEvent('download');
      await other.getByRole('button', { name: 'Export CSV' }).click();
      expect(readFileSync(await (await exported).path(), 'utf8'))
        .to.include('Key of the other')
        .and.not.include('Practice software');
      await other.getByRole('link', { name: 'API keys' }).click();
      await row.getByRole('button', { name: /Revoke/ }).click();
      await other.getByRole('alertdialog').getByRole('button', { name: 'Revoke', exact: true }).click();
      await other.getByText('No API keys yet').waitFor();
      expect(await browser.harness.direct.storage.database.read('api_keys').where({ name: 'Key of the other' })).to.deep.equal([]);
    });

    it("keep showing a key value until it's saved, whatever happens in another tab", async () => {
      await signInOnForm('account');
      const keyValue = await createKey();
      const other = await browser.context.newPage();
      await other.goto(browser.harness.core.url);
      await other.getByRole('button', { name: 'Sign out', exact: true }).click();
      await other.getByLabel('Email').waitFor();
      await eventually(async () => expect(await browser.page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await button("I've Saved It").click();
      await browser.page.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
    });
  });

  describe('another user who signs in in another tab', () => {
    const tellTabs = () => browser.page.evaluate(`new BroadcastChannel('callkey-session').postMessage(null)`);
    const isShown = (name: string) => browser.page.getByRole('banner').getByText(name, { exact: true }).waitFor();

    it('is followed even if the first request about them fails', async () => {
      await browser.page.clock.install();
      await open();
      await browser.useSession('partner');
      await browser.page.route('**/console/session', (route) => route.abort(), { times: 1 });
      const failed = browser.page.waitForEvent('requestfailed');
      await tellTabs();
      await failed;
      // The page tries again after a few seconds.
      await eventually(async () => {
        await browser.page.clock.runFor(1_000);
        expect(await browser.page.getByRole('banner').getByText('Pat Partner', { exact: true }).count()).to.equal(1);
      });
    });

    it("is followed within a minute even if the other tab couldn't say so", async () => {
      await browser.page.clock.install();
      await open();
      await browser.useSession('partner');
      await untilSessionIsReadAgain(browser.page);
      await isShown('Pat Partner');
    });

    it('is followed only after a key value has been saved, however the page learns of them', async () => {
      await browser.page.clock.install();
      await open();
      const keyValue = await createKey();
      await browser.useSession('partner');
      const read = await untilSessionIsReadAgain(browser.page);
      await (await read.response())?.finished();
      await settle(browser.page);
      await eventually(async () => expect(await browser.page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await button("I've Saved It").click();
      await isShown('Pat Partner');
    });

    it('is followed only after a key value has been saved if they sign in while the key is being created', async () => {
      await open();
      const held = await holdResponse(browser.page, '**/console/session');
      await browser.useSession('partner');
      await tellTabs();
      await held.answered;
      await browser.useSession('account');
      const keyValue = await createKey();
      await browser.useSession('partner');
      await held.release();
      await eventually(async () => expect(await browser.page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await button("I've Saved It").click();
      await isShown('Pat Partner');
    });
  });

  it('follows another tab in which the user has replaced their one-time password', async () => {
    const { core, direct, tenants } = browser.harness;
    const { password } = await resetPassword(direct.ports, operator, tenants.users.tied, null);
    await browser.page.goto(core.url);
    await browser.page.getByLabel('Email').fill('tia@example.com');
    await browser.page.getByLabel('Password').fill(password ?? '');
    await button('Sign in').click();
    await browser.heading('Choose a new password').waitFor();
    const other = await browser.context.newPage();
    await other.goto(core.url);
    await other.getByLabel('New password', { exact: true }).fill('four words are plenty');
    await other.getByRole('button', { name: 'Change password' }).click();
    await other.getByRole('navigation').waitFor();
    await browser.page.bringToFront();
    await browser.page.getByRole('navigation').waitFor();
  });

  it("warns the user if signing out didn't reach the core", async () => {
    await open();
    await browser.page.route('**/console/session', (route) => route.abort());
    await button('Sign out').click();
    await browser.page.getByText('your session wasn’t ended').waitFor();
  });
});
