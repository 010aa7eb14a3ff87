import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { BrowserContext, Page } from 'playwright-core';
import { instant } from '../../core/domain/instant.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { describeBrowser, sharedBrowser, watch } from '../support/chromium.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { skip } from '../support/skip.ts';
import { password, placeCall, signIn } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

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

  it('asks only for the email address and password', async () => {
    await page.goto(harness.core.url);
    await page.getByLabel('Email').waitFor();
    await eventually(async () => expect(await page.locator('form input').count()).to.equal(2));
    await page.getByText('You stay signed in to this browser').waitFor();
  });

  it('keeps the session and device in cookies that no script or other site can read', async () => {
    await signInOnForm('account');
    const cookies = await context.cookies();
    expect(cookies.map(({ name }) => name)).to.include.members(['callkey_session', 'callkey_device']);
    for (const cookie of cookies) expect(cookie).to.include({ httpOnly: true, sameSite: 'Strict', path: '/' });
    expect(await page.evaluate('document.cookie')).to.equal('');
    await page.reload();
    await heading('API keys').waitFor();
  });

  it('limits the cookie to this host over HTTPS (with a certificate from openssl)', async function () {
    if (!hasOpenssl) skip(this, 'openssl is not installed');
    const secure = await openCore({ environment: selfSignedCertificate() });
    const browser = await sharedBrowser();
    const trusting = await browser.newContext({ ignoreHTTPSErrors: true });
    const tab = await trusting.newPage();
    await tab.goto(secure.core.url);
    await signInAs({ ...secure, page: tab }, 'account');
    const cookies = await trusting.cookies();
    expect(cookies.map(({ name }) => name)).to.include.members(['__Host-callkey_session', '__Host-callkey_device']);
    for (const cookie of cookies) expect(cookie).to.include({ secure: true, httpOnly: true, sameSite: 'Strict', path: '/' });
    await tab.reload();
    await tab.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
    await trusting.close();
    await secure.close();
  });

  it('can be used with only the keyboard, from the sign-in form to a new key', async () => {
    await page.goto(harness.core.url);
    await page.getByLabel('Email').waitFor();
    await page.keyboard.type(harness.tenants.users.account.email);
    await page.keyboard.press('Tab');
    await page.keyboard.type(password);
    await page.keyboard.press('Enter');
    await heading('API keys').waitFor();
    const focused = () => page.evaluate('document.activeElement.textContent.trim()');
    while ((await focused()) !== 'Create API key') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.type('By keyboard');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    while ((await focused()) !== 'Create Key') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    while ((await focused()) !== "I've Saved It") await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('By keyboard is ready to use.').waitFor();
  });

  it('shows names with markup as plain text', async () => {
    const names = [
      '<img src=x onerror=alert(1)>',
      '</script><script>alert(1)</script>',
      '{{constructor.constructor("alert(1)")()}}',
      '鍵🔑 مفتاح',
    ];
    for (const name of names) await createKeyOn(harness, harness.tenants.users.account, name);
    page.on('dialog', (dialog) => refused.push(`${dialog.type()}: ${dialog.message()}`));
    await open();
    for (const screen of ['API keys', 'Activity']) {
      await link(screen).click();
      for (const name of names) await page.getByRole('row').filter({ hasText: name }).first().waitFor();
    }
    expect(await page.locator('main img, body script').count()).to.equal(0);
  });

  it('asks the core to filter calls and activity by day, outcome, key, user and action', async () => {
    const { core, direct, tenants } = harness;
    const { keyValue, id } = await createKeyOn(harness, tenants.users.account, 'Orders');
    for (let index = 0; index < 60; index++) await placeCall(core.url, tenants.campaign.id, keyValue);
    const days = Date.now() - 2 * 86_400_000;
    const oldId = `${direct.ports.randomness.id().replace(/^.{13}/, days.toString(16).padStart(12, '0').replace(/^.{8}/, '$&-'))}`;
    const old = { contact_id: oldId, request_id: 'long-ago', campaign_id: tenants.campaign.id, account_id: tenants.account.id };
    await direct.storage.database.write('calls').insert({
      ...old,
      api_key_id: id,
      state: 'busy',
      phone: '+493020001',
      placed_at: instant(days),
      ended_at: instant(days),
      attempt: 0,
    });
    await open();
    await link('Calls').click();
    await page.getByText('50 of 61 calls').waitFor();
    await button('Export CSV').click();
    await page.getByText('Exported 61 calls.').waitFor();
    const day = DateTime.fromMillis(days).toISODate() ?? '';
    await page.getByLabel('Days', { exact: true }).selectOption(day);
    await page.getByText('1 call,').waitFor();
    await page.getByRole('row').filter({ hasText: '+493020001' }).waitFor();
    await eventually(async () => expect(await page.getByLabel('From day').inputValue()).to.equal(day));
    await page.getByRole('search').getByLabel('Key').selectOption('Orders');
    await page.getByLabel('State').selectOption('Failed');
    await page.getByText('No matching calls').waitFor();
    await page.getByRole('button', { name: 'Show all calls' }).click();
    await page.getByPlaceholder('Contact, phone number, or request ID').fill('+49 30 2000-1');
    await page.getByRole('row').filter({ hasText: '+493020001' }).waitFor();
    await page.getByText('1 call,').waitFor();

    // More than a page of sign-ins pushes the key created before them off the list.
    const events = Array.from({ length: 60 }, () => ({
      id: direct.ports.randomness.id(),
      at: instant(Date.now()),
      action: 'session.started',
    }));
    const { account } = tenants.users;
    const by = { actor_id: account.id, actor_name: account.name, account_id: tenants.account.id, partner_id: tenants.partner.id };
    const about = { subject_kind: 'user' as const, subject_id: account.id, subject_name: account.name, address: '127.0.0.1' };
    await direct.storage.database.write('audit_events').insert(events.map((event) => ({ ...event, ...by, ...about })));
    await link('Activity').click();
    await page.getByText('50 of ').waitFor();
    await page.getByLabel('Action').selectOption('Created the API key');
    await page.getByRole('row').filter({ hasText: 'Orders' }).waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'Signed in' }).count()).to.equal(0);
    await page.getByLabel('To day').fill(day);
    await page.getByText('No matching activity').waitFor();
  });

  it('saves the list as a download', async () => {
    await open();
    const started = page.waitForEvent('download');
    await button('Export CSV').click();
    const download = await started;
    expect(download.suggestedFilename()).to.equal('api-keys.csv');
    expect(readFileSync(await download.path(), 'utf8')).to.include('Practice software');
    await page.getByText(/^Exported \d+ API keys?\.$/).waitFor();
  });

  it('copies an ID', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open();
    await page.getByRole('row', { name: 'Practice software' }).first().click();
    const id = await page.getByRole('complementary').locator('code').innerText();
    await button('Copy ID').click();
    await page.getByText('Copied the ID.').waitFor();
    expect(await clipboardText()).to.equal(id);
  });

  it("hides an announcement when a dialog opens, so that it doesn't cover the buttons", async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open();
    await page.getByRole('row', { name: 'Practice software' }).first().click();
    await button('Copy ID').click();
    await page.getByText('Copied the ID.').waitFor();
    await button('Create API key').click();
    await page.getByRole('dialog').waitFor();
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    expect(await page.getByText('Copied the ID.').count()).to.equal(0);
  });

  it('over HTTP from another machine, warns that others can read the traffic, and neither hashes nor copies keys', async () => {
    const address = harness.core.url.replace('127.0.0.1', 'calls.callkey.test');
    await signInOnForm('account', address);
    await button('Which key is this?').click();
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Pasted in the clear');
    await page.getByLabel('Key value').fill(keyValue);
    await button('Find key').click();
    await page.getByText('Your browser allows this only over HTTPS.').waitFor();
    await button('Close').click();
    await createKey();
    await button('Copy').click();
    await page.getByText('Your browser blocked copying.').waitFor();
    await button("I've Saved It").click();
    await button('Sign out').click();
    await page.getByText('This connection isn’t encrypted').waitFor();
  });
});
