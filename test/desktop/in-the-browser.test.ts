import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { BrowserContext, ConsoleMessage, Dialog, Page } from 'playwright-core';
import { instant } from '../../core/domain/instant.ts';
import { violationsOn } from '../support/axe.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { describeBrowser, sharedBrowser } from '../support/chromium.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { readHeap } from '../support/heap.ts';
import { textAt } from '../support/http.ts';
import { showOneTimePasswords } from '../support/one-time-passwords.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openInChromium, walkThrough } from '../support/screen-walkthrough.ts';
import { skip } from '../support/skip.ts';
import { password, placeCall, signIn } from '../support/tenants.ts';
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

describeBrowser('the screens in a browser', () => {
  /** Widths in CSS pixels: a large window, a tablet, a phone or a narrow window at 200 %, one at 400 %, and a narrow window. */
  const widths = [1600, 800, 320, 240, 480];

  /** By how many pixels any element scrolls sideways. */
  const sideways = `Math.max(...[document.scrollingElement, ...document.querySelectorAll('.shell, .page, .details, dialog')]
    .map((each) => each.scrollWidth - each.clientWidth))`;

  it('have no axe violations, follow the content security policy and never scroll sideways, in any state', async function () {
    this.timeout(240_000);
    const complaints: string[] = [];
    let refused: string[] = [];
    let stops = 0;
    const open = async (url: string) => {
      const home = await openInChromium('about:blank');
      // Transitions are off, because the colors belong to neither theme during a transition.
      await home.page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
      refused = watch(home.page);
      await home.page.goto(url);
      return home;
    };
    for await (const { name, page } of walkThrough(open)) {
      stops += 1;
      complaints.push(...refused.splice(0).map((text) => `${name}: ${text}`));
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 });
        const wide = await page.evaluate(sideways);
        if (Number(wide) > 0) complaints.push(`${name} scrolls ${wide} px sideways at ${width} px`);
      }
      // Only in the last width, the narrow one. The wide screens in both themes are the same as in Electron (accessibility.test.ts).
      complaints.push(...(await violationsOn(page)).map((violation) => `${name}: ${violation}`));
      // The page doesn't cause the changes that axe makes.
      refused.length = 0;
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    expect(complaints.join('\n')).to.equal('');
    expect(stops).to.be.at.least(39);
  });
});

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
  const path = () => page.evaluate('location.pathname + location.search + location.hash');

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
    if (!hasOpenssl) skip(this, 'there is no openssl');
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

  describe('the address', () => {
    it('contains the screen, and Back and Forward move between screens', async () => {
      await open();
      expect(await path()).to.equal('/#/api-keys');
      await link('Calls').click();
      await link('Activity').click();
      expect(await path()).to.equal('/#/activity');
      await page.goBack();
      await heading('Calls').waitFor();
      await page.goBack();
      await heading('API keys').waitFor();
      await page.goForward();
      await heading('Calls').waitFor();
      await eventually(async () => expect(await page.evaluate('document.activeElement.textContent')).to.equal('Calls'));
    });

    it('contains the campaign whose calls are shown, and Back returns to all campaigns', async () => {
      await open(harness.core.url, 'partner');
      await link('Calls').click();
      await page.getByLabel('Campaign').selectOption('Appointment reminders');
      await page.waitForURL(/#\/calls\/[0-9a-f-]{36}$/);
      const address = page.url();
      await eventually(async () => expect(await page.getByLabel('Campaign').inputValue()).to.equal(address.split('/').at(-1)));
      await page.goBack();
      await page.getByLabel('Campaign').getByText('All campaigns').and(page.locator(':checked')).waitFor({ state: 'attached' });
      expect(await path()).to.equal('/#/calls');
      await page.goForward();
      await page.getByPlaceholder('Contact, phone number, or request ID').waitFor();
      await page.goto('about:blank');
      await open(address, 'partner');
      await page.getByPlaceholder('Contact, phone number, or request ID').waitFor();
    });

    it('opens the screen that it names', async () => {
      await open(`${harness.core.url}/#/users`, 'staff');
      await heading('Users').waitFor();
    });

    it('opens the home screen if its screen is unknown or not allowed', async () => {
      for (const hash of ['#/users', '#/nothing', '#//evil.example']) {
        await open(`${harness.core.url}/${hash}`);
        await page.waitForURL(/#\/api-keys$/);
        await heading('API keys').waitFor();
        await page.goto('about:blank');
      }
    });

    it('contains the search, sort order, page size and open key, which survive a reload and open in a new tab', async () => {
      const { id } = await createKeyOn(harness, harness.tenants.users.account, 'Front desk');
      await open();
      await page.getByLabel('Search by name').fill('front');
      await button('Name').click();
      await page.getByLabel('Rows per page').selectOption('50');
      await page.getByRole('row', { name: 'Front desk' }).click();
      await page.getByRole('complementary').waitFor();
      expect(await path()).to.equal(`/#/api-keys/${id}?search=front&sort=name&size=50`);
      await page.reload();
      await page.getByRole('complementary').getByRole('heading', { name: 'Front desk' }).waitFor();
      await eventually(async () => expect(await page.getByLabel('Search by name').inputValue()).to.equal('front'));
      const opening = context.waitForEvent('page');
      await page.getByRole('link', { name: 'Front desk' }).click({ modifiers: ['Control'] });
      const tab = await opening;
      await tab.getByRole('complementary').getByRole('heading', { name: 'Front desk' }).waitFor();
      await tab.close();
      await button('Close details').click();
      await page.goBack();
      await page.getByRole('complementary').waitFor();
    });

    it("opens a key, user or call that isn't on the loaded page of the list, and says if it no longer exists", async () => {
      const { keyValue, id } = await createKeyOn(harness, harness.tenants.users.account, 'Linked');
      const contactId = textAt(await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue), 'contactId');
      const panel = page.getByRole('complementary');
      await open(`${harness.core.url}/#/calls/${harness.tenants.campaign.id}/${contactId}?state=failed`, 'partner');
      await panel.getByRole('link', { name: 'Linked' }).click();
      await panel.getByRole('heading', { name: 'Linked' }).waitFor();
      expect(await path()).to.equal(`/#/api-keys/${id}`);
      await page.goto(`${harness.core.url}/#/users/${harness.tenants.users.teammate.id}?search=zzz`);
      await panel.getByRole('heading', { name: 'Tom Teammate' }).waitFor();
      await link('Show activity').click();
      await page.getByRole('heading', { name: 'Activity' }).waitFor();
      await page.goto(`${harness.core.url}/#/api-keys/gone`);
      await panel.getByText('This key was revoked, or you don’t have access to it.').waitFor();
    });

    it('contains the filters of calls and activity, and the parent in the directory', async () => {
      await open(`${harness.core.url}/#/calls/${harness.tenants.campaign.id}?state=failed&from=2026-11-01&to=2026-11-08`, 'partner');
      await eventually(async () => expect(await page.getByLabel('From day').inputValue()).to.equal('2026-11-01'));
      await eventually(async () => expect(await page.getByLabel('State').inputValue()).to.equal('failed'));
      await page.goto(`${harness.core.url}/#/activity?action=user.added&to=2026-11-08`);
      await heading('Activity').waitFor();
      await eventually(async () => expect(await page.getByLabel('To day').inputValue()).to.equal('2026-11-08'));
      await page.goto(`${harness.core.url}/#/directory/campaign?parent=${harness.tenants.siblingAccount.id}`);
      await page.getByRole('row', { name: 'Recalls' }).waitFor();
      expect(await page.getByRole('row', { name: 'Appointment reminders' }).count()).to.equal(0);
      await page.getByRole('button', { name: 'In Green Clinic' }).waitFor();
    });

    it('is kept until the user signs in, and cleared after they sign out', async () => {
      await page.goto(`${harness.core.url}/#/calls/${harness.tenants.campaign.id}?state=failed`);
      await page.getByLabel('Email').fill(harness.tenants.users.account.email);
      await page.getByLabel('Password').fill(password);
      await button('Sign in').click();
      await heading('Calls').waitFor();
      await eventually(async () => expect(await page.getByLabel('State').inputValue()).to.equal('failed'));
      await button('Sign out').click();
      await page.getByLabel('Email').waitFor();
      expect(await path()).to.equal('/');
    });

    it('stays the same when Back closes a dialog', async () => {
      await open();
      await goHomeFromCalls();
      await button('Create API key').click();
      await page.goBack();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await path()).to.equal('/#/api-keys');
    });
  });

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

    it('is gone from the storage, address, history, log and heap after the dialog is closed', async () => {
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

  describe('the charts', () => {
    let apiKeyId: string;
    let placedAt: DateTime;
    before(async () => {
      const { id, keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Charted');
      apiKeyId = id;
      placedAt = DateTime.fromISO(textAt(await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue), 'placedAt'));
      const quarter = Math.floor(placedAt.toMillis() / 900_000) * 900_000;
      // A core collects uses for a minute before it writes them.
      await harness.direct.storage.database
        .write('api_key_usage')
        .insert({ api_key_id: id, quarter_at: instant(quarter), placed: 1, cancelled: 0 });
    });
    const tips = async () => {
      const tip = page.locator('g[data-tip]:not([data-tip*=": 0 "])').first();
      await tip.waitFor();
      return page
        .locator('g[data-tip]:not([data-tip*=": 0 "])')
        .evaluateAll((all) => all.map((each) => each.getAttribute('data-tip') ?? ''));
    };

    // At any time, at least one of them has a different day than the machine and UTC.
    for (const timezoneId of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
      it(`count a call on its day in the viewer's time zone (${timezoneId})`, async () => {
        await context.close();
        context = await (await sharedBrowser()).newContext({ timezoneId, locale: 'en-GB' });
        page = await context.newPage();
        const day = new RegExp(`\\b${placedAt.setZone(timezoneId).day}\\b`);
        await open();
        await page.locator(`[data-id="${apiKeyId}"], tr`, { hasText: 'Charted' }).first().click();
        const used = await tips();
        await link('Calls').click();
        await page.getByLabel('Outcomes in the last 30 days').waitFor();
        const ofCampaign = await tips();
        await context.clearCookies();
        await open(harness.core.url, 'partner');
        await link('Calls').click();
        await page.getByLabel('Outcomes in the last 30 days').waitFor();
        const ofAll = await tips();
        for (const [which, of] of Object.entries({ used, ofCampaign, ofAll })) {
          expect(of, which).to.have.length(1);
          expect(of[0], which).to.match(day);
        }
      });
    }
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
