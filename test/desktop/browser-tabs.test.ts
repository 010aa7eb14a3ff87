import { expect } from 'chai';
import type { BrowserContext, ConsoleMessage, Dialog, Page } from 'playwright-core';
import { describeBrowser, sharedBrowser } from '../support/chromium.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { readHeap } from '../support/heap.ts';
import { showOneTimePasswords } from '../support/one-time-passwords.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { signIn } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

/** The browser's warnings, and the errors thrown by the page. */
function watch(page: Page): string[] {
  const complaints: string[] = [];
  page.on('console', (message: ConsoleMessage) => {
    if (/Content Security Policy|Trusted ?(?:Type|HTML|Script)|autofocus/i.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return complaints;
}

describeBrowser('the console in a browser', () => {
  let harness: CoreHarness;
  let context: BrowserContext;
  let page: Page;
  let refused: string[];

  before(async () => {
    harness = await openCore();
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
  });
  after(() => harness.close());
  beforeEach(async () => {
    const browser = await sharedBrowser();
    context = await browser.newContext({ timezoneId: 'Europe/Berlin', locale: 'en-GB' });
    page = await context.newPage();
    refused = watch(page);
  });
  afterEach(async () => {
    expect(refused).to.deep.equal([]);
    await context.close();
  });

  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });

  const signInOnForm = async (user: 'account' | 'staff', address = harness.core.url) => {
    await page.goto(address);
    await signInAs({ ...harness, page }, user);
  };

  const sessions: Partial<Record<'account' | 'partner' | 'staff', string>> = {};
  /** Opens the page with a session that the tests share, so they don't sign out of it. */
  async function open(address = harness.core.url, user: keyof typeof sessions = 'account'): Promise<void> {
    const cookies = sessions[user] ?? (await signIn(harness.core.url, harness.tenants.users[user].email));
    sessions[user] = cookies;
    const pairs = cookies.split('; ').map((pair) => pair.split('=', 2));
    await context.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: address })));
    await page.goto(address);
    await page.getByRole('navigation').waitFor();
  }

  /** Without this, going back would lead to another screen. */
  async function goHomeFromCalls(): Promise<void> {
    await link('Calls').click();
    await heading('Calls').waitFor();
    await link('API keys').click();
    await heading('API keys').waitFor();
  }

  /** The page itself can't read the clipboard, so another page does. */
  async function clipboardText(): Promise<string> {
    const other = await context.newPage();
    await other.route('**/*', (route) => route.fulfill({ body: '' }));
    await other.goto(harness.core.url);
    return other.evaluate('navigator.clipboard.readText()');
  }

  async function createKey(): Promise<string> {
    await button('Create API key').click();
    await page.getByLabel('Name', { exact: true }).fill('Canary');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    await button('Create Key').click();
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    return page.getByLabel('Key value').inputValue();
  }

  describe('a key value', () => {
    it("isn't lost by Back or by leaving the page: both ask first", async () => {
      await open();
      await goHomeFromCalls();
      const keyValue = await createKey();
      await page.goBack();
      await page.getByText('Close without saving?').waitFor();
      await eventually(async () => expect(await page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      const asked = page.waitForEvent('dialog');
      const left = page.goto('about:blank').catch((error: Error) => error.message);
      const question: Dialog = await asked;
      expect(question.type()).to.equal('beforeunload');
      await question.dismiss();
      expect(await left).to.include('ERR_ABORTED');
      await eventually(async () => expect(await page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await button('Close without saving').click();
      await page.goto('about:blank');
    });

    it("can be copied, and the dialog says that the page can't clear the clipboard", async () => {
      await context.grantPermissions(['clipboard-read', 'clipboard-write']);
      await open();
      const keyValue = await createKey();
      await page.getByText('a web page can’t clear your clipboard.').first().waitFor();
      await button('Copy').click();
      await button('Copied').waitFor();
      expect(await clipboardText()).to.equal(keyValue);
    });

    it('is selected for copying by hand if the browser blocks copying', async () => {
      await open();
      const keyValue = await createKey();
      await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))");
      await button('Copy').click();
      await page.getByText('Your browser blocked copying.').waitFor();
      expect(await page.evaluate('getSelection().toString()')).to.equal(keyValue);
    });

    it('is gone from storage, address, history, log and heap after the dialog is closed', async () => {
      await open();
      const secret = (await createKey()).slice('svc_sk_live_'.length);
      await button("I've Saved It").click();
      await page.getByText('Canary is ready to use.').waitFor();
      for (const screen of ['Activity', 'Calls', 'API keys']) await link(screen).click();
      await page.getByRole('row', { name: 'Canary' }).first().waitFor();
      const places = await page.evaluate(async () => [
        { ...localStorage },
        { ...sessionStorage },
        await indexedDB.databases(),
        await caches.keys(),
        history.state,
        location.href,
        document.documentElement.outerHTML,
      ]);
      expect(JSON.stringify(places)).not.to.include(secret);
      expect(places.slice(0, 4)).to.deep.equal([{}, {}, [], []]);
      expect(JSON.stringify(harness.core.log)).not.to.include(secret);
      expect(await readHeap(page), 'the heap of the page').not.to.include(secret);
    });

    it('is gone after its dialog is closed, and so is every one-time password, whichever button showed it', async () => {
      await open(harness.core.url, 'partner');
      const secrets = await showOneTimePasswords(page, 'Blue Clinic');
      const places = await page.evaluate(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.documentElement.outerHTML])',
      );
      const heap = await readHeap(page);
      for (const secret of secrets) {
        expect(places).not.to.include(secret);
        expect(heap, 'the heap of the page').not.to.include(secret);
        expect(JSON.stringify(harness.core.log)).not.to.include(secret);
      }
    });

    it('is hashed in the page when searching for its key: the core gets only the hash', async () => {
      const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Found in a log');
      await open();
      await button('Which key is this?').click();
      await page.getByLabel('Key value').fill(keyValue);
      const sent = page.waitForRequest(/identify/);
      await button('Find key').click();
      expect((await sent).postData()).to.match(/^\{"sha256":"[0-9a-f]{64}"\}$/);
      await page.locator('tr', { hasText: 'Found in a log' }).first().waitFor();
    });
  });

  describe('several tabs', () => {
    it('share a session: signing in, selecting a tenancy and signing out show up in all of them', async () => {
      const other = await context.newPage();
      await other.goto(harness.core.url);
      await other.getByLabel('Email').waitFor();
      // A background tab draws, and therefore responds, only once per second.
      await page.bringToFront();
      await signInOnForm('staff');
      await other.bringToFront();
      await other.getByText('Choose an account or partner first').waitFor();
      await page.bringToFront();
      await button('Choose').click();
      await page.getByRole('dialog').getByRole('combobox').fill('blue');
      await page.getByRole('option', { name: /Blue Clinic/ }).click();
      await other.bringToFront();
      await other.getByRole('button', { name: /Blue Clinic/ }).waitFor();
      await page.bringToFront();
      await button('Sign out').click();
      await other.bringToFront();
      await other.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
    });

    it('each act in the tenancy that they show, even if another tab has selected a different tenancy since', async () => {
      await open(harness.core.url, 'staff');
      await button('Choose').click();
      await page.getByRole('dialog').getByRole('combobox').fill('blue');
      await page.getByRole('option', { name: /Blue Clinic/ }).click();
      await page.getByRole('row', { name: 'Practice software' }).waitFor();
      // This simulates another tab whose message hasn't arrived here yet.
      const { write } = harness.direct.storage.database;
      await write('sessions')
        .where({ user_id: harness.tenants.users.staff.id })
        .update({ tenancy_kind: 'partner', tenancy_id: harness.tenants.otherPartner.id });
      await createKey();
      await button("I've Saved It").click();
      await page.getByRole('row', { name: /Canary .*You/ }).waitFor();
      await eventually(async () => expect(await page.getByRole('row', { name: 'Practice software' }).count()).to.equal(1));
      const [canary] = await write('api_keys').where({ name: 'Canary', creator_id: harness.tenants.users.staff.id });
      expect(canary?.account_id).to.equal(harness.tenants.account.id);
    });

    it("can show two customers at the same time, and each tab changes only its own customer's data, even after a reload", async () => {
      const { account, otherPartner } = harness.tenants;
      await createKeyOn(harness, harness.tenants.users.other, 'Key of the other');
      await open(`${harness.core.url}/#/api-keys?tenancy=account/${account.id}`, 'staff');
      await page.getByRole('row', { name: 'Practice software' }).waitFor();
      const other = await context.newPage();
      await other.goto(`${harness.core.url}/#/api-keys?tenancy=partner/${otherPartner.id}`);
      const row = other.getByRole('row', { name: 'Key of the other' });
      await row.waitFor();
      await page.bringToFront();
      await page.reload();
      await page.getByRole('row', { name: 'Practice software' }).waitFor();
      await other.bringToFront();
      await other.getByRole('button', { name: 'Refresh' }).click();
      expect(await other.getByRole('row', { name: 'Practice software' }).count()).to.equal(0);
      await row.getByRole('button', { name: /Revoke/ }).click();
      await other.getByRole('alertdialog').getByRole('button', { name: 'Revoke', exact: true }).click();
      await other.getByText('No API keys yet').waitFor();
      expect(await harness.direct.storage.database.read('api_keys').where({ name: 'Key of the other' })).to.deep.equal([]);
    });

    it("keep showing a key value until it's saved, whatever happens in another tab", async () => {
      await signInOnForm('account');
      const keyValue = await createKey();
      const other = await context.newPage();
      await other.goto(harness.core.url);
      await other.getByRole('button', { name: 'Sign out', exact: true }).click();
      await other.getByLabel('Email').waitFor();
      await eventually(async () => expect(await page.getByLabel('Key value').inputValue()).to.equal(keyValue));
      await button("I've Saved It").click();
      await page.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
    });
  });

  it("warns the user if signing out didn't reach the core", async () => {
    await open();
    await page.route('**/console/session', (route) => route.abort());
    await button('Sign out').click();
    await page.getByText('your session wasn’t ended').waitFor();
  });
});
