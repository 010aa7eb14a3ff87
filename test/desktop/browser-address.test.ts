import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { BrowserContext, ConsoleMessage, Page } from 'playwright-core';
import { instant } from '../../core/domain/instant.ts';
import { describeBrowser, sharedBrowser } from '../support/chromium.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { textAt } from '../support/http.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { password, placeCall, signIn } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

/** Returns the browser's warnings, and the errors thrown by the page. */
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
  const path = () => page.evaluate('location.pathname + location.search + location.hash');

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
      await page.getByRole('heading', { name: 'Activity', exact: true }).waitFor();
      await page.goto(`${harness.core.url}/#/api-keys/gone`);
      await panel.getByText('This key was revoked, or you don’t have access to it.').waitFor();
    });

    it("says if the viewer doesn't have access to a campaign or user that a colleague chose", async () => {
      const { siblingCampaign, users } = harness.tenants;
      await open(`${harness.core.url}/#/calls/${siblingCampaign.id}?state=failed`);
      await heading('Campaign not found').waitFor();
      await button('Show all calls').click();
      await page.getByLabel('Search').waitFor();
      expect(await path()).to.equal('/#/calls');
      await page.goto(`${harness.core.url}/#/activity?actor=${users.sibling.id}`);
      await heading('No matching activity').waitFor();
      await page.getByLabel('User').getByText('The chosen user').and(page.locator(':checked')).waitFor({ state: 'attached' });
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
});
