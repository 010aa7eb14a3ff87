import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeUser } from '../../core/domain/directory/users.ts';
import { describeBrowser, sharedBrowser } from '../support/browser.ts';
import { signInAs, type UserName } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import { openOnce } from '../support/opened.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

describeBrowser('the console in daily work', () => {
  const harness = openOnce(() => openCore());
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    const { account, teammate } = harness.tenants.users;
    for (let index = 0; index < 24; index++)
      await createKeyOn(harness, account, `Key ${index}`, { on: `2026-03-0${1 + (index % 9)}T08:00:00.000Z` });
    await createKeyOn(harness, teammate, 'Of Tom');
  });
  beforeEach(async () => {
    context = await (await sharedBrowser()).newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
    await page.goto(harness.core.url);
  });
  afterEach(() => context.close());

  const enter = (user: UserName = 'partner') => signInAs({ ...harness, page }, user);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const rows = () => page.locator('tbody tr');

  it('finds users, campaigns and IDs with Ctrl+K', async () => {
    const { campaign, users } = harness.tenants;
    await enter();
    const dialog = page.getByRole('dialog', { name: 'Go to' });
    for (const [search, option, address, shown] of [
      [
        'tom@',
        /Tom Teammate.*User · tom@example.com/,
        `#/users/${users.teammate.id}`,
        page.getByRole('complementary', { name: /Tom Teammate/ }),
      ],
      ['remind', /Appointment reminders.*Campaign · Blue Clinic/, `#/calls/${campaign.id}`, page.getByText('No calls yet')],
      [users.sibling.id, /Sue Sibling/, `#/users/${users.sibling.id}`, page.getByRole('complementary', { name: /Sue Sibling/ })],
    ] as const) {
      await page.keyboard.press('Control+k');
      await dialog.getByRole('combobox').fill(search);
      await dialog.getByRole('option', { name: option }).click();
      await shown.waitFor();
      expect(new URL(page.url()).hash).to.equal(address);
    }
  });

  it('shows help when ? is pressed, and keeps the chosen colors and number of rows', async () => {
    await enter();
    await rows().first().waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Help' });
    await help.getByText('Next or previous row').waitFor();
    await help.getByLabel('Colors').selectOption('Dark');
    await help.getByRole('button', { name: 'Close' }).click();
    await page.getByLabel('Rows per page').selectOption('50');
    await page.goto(`${harness.core.url}/#/users`);
    await page.reload();
    await link('API keys').click();
    await eventually(async () => expect(await rows().count()).to.equal(25));
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).to.equal('dark');
  });

  it('closes details when a filter hides their row', async () => {
    await enter();
    await page.getByRole('row', { name: 'Of Tom' }).click();
    await page.getByRole('complementary').waitFor();
    await page.getByLabel('Search by name').fill('of tom');
    await page.getByRole('complementary').waitFor();
    await page.getByLabel('Search by name').fill('Key 1');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
  });

  it('lets the user choose the campaign for the test call', async () => {
    await enter();
    await button('Create API key').click();
    await page.getByLabel('Name', { exact: true }).fill('Chosen');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    await button('Create Key').click();
    await page.getByRole('alertdialog').getByLabel('Campaign').selectOption('Recalls');
    await page.locator('dialog pre', { hasText: harness.tenants.siblingCampaign.id }).waitFor();
    await button("I've Saved It").click();
  });

  it("doesn't offer to copy the test call's command until its campaign is known", async () => {
    const asked = Promise.withResolvers<void>();
    await page.route('**/console/campaigns*', async (route) => {
      await asked.promise;
      await route.continue();
    });
    await enter();
    await button('Create API key').click();
    await page.getByLabel('Name', { exact: true }).fill('Early');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    await button('Create Key').click();
    await page.locator('dialog pre[aria-busy="true"]').waitFor();
    expect(await button('Copy command').count()).to.equal(0);
    asked.resolve();
    await button('Copy command').waitFor();
    expect(await page.locator('dialog pre').innerText()).to.include(harness.tenants.campaign.id);
    await button("I've Saved It").click();
  });

  it('copies an invitation without the password, and saves the list of keys before deleting a user', async () => {
    await enter();
    await link('Users').click();
    await button('Create user').click();
    await page.getByLabel('Name', { exact: true }).fill('Nora New');
    await page.getByLabel('Email', { exact: true }).fill('nora@example.com');
    await page.getByLabel('Account', { exact: true }).selectOption('Blue Clinic');
    await page.getByRole('dialog').getByRole('button', { name: 'Create user' }).click();
    const password = await page.getByLabel('One-time password').inputValue();
    await button('Copy invitation').click();
    await page.getByRole('alertdialog').getByText('Copied the invitation.').waitFor({ state: 'attached' });
    const other = await context.newPage();
    await other.route('**/*', (route) => route.fulfill({ body: '' }));
    await other.goto(harness.core.url);
    const invitation = await other.evaluate(() => navigator.clipboard.readText());
    expect(invitation).to.include('nora@example.com').and.include(harness.core.url).and.not.include(password);
    await button("I've Saved It").click();
    await button('Delete Tom Teammate').click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('alertdialog').getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(readFileSync(await download.path(), 'utf8')).to.match(/"Of Tom","Never","0"\r\n$/);
  });

  it('shows a new call as soon as the user returns to the window', async () => {
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.sibling, 'Tried out');
    await page.clock.install();
    await enter('sibling');
    await link('Calls').click();
    await page.getByText('No calls yet').waitFor();
    // No timer fires anymore.
    await page.clock.pauseAt(Date.now() + 60_000);
    await placeCall(harness.core.url, harness.tenants.siblingCampaign.id, keyValue);
    // Repeated, because moving the clock may have started a load, and until it has finished, the user's return doesn't start another.
    await eventually(async () => {
      await page.evaluate("dispatchEvent(new Event('focus'))");
      expect(await page.getByRole('grid', { name: 'Calls' }).count()).to.equal(1);
    });
  });

  /**
   * The page reads the session again a minute after it first did. That moment isn't known here, so the clock moves one second at a time until
   * the page sends the request.
   */
  async function untilSessionIsReadAgain(): Promise<void> {
    let isAsked = false;
    page.on('request', (request) => {
      isAsked ||= request.method() === 'GET' && request.url().endsWith('/console/session');
    });
    await until(async () => {
      if (!isAsked) await page.clock.runFor(1_000);
      return isAsked;
    });
  }

  it('asks a user who was moved to another account to sign in again', async () => {
    const { tenants, direct } = harness;
    await page.clock.install();
    await enter('sibling');
    await page.locator('.tenancy').getByText('Green Clinic').waitFor();
    const change = { name: 'Sue Sibling', userType: 'account', accountId: tenants.account.id, partnerId: null } as const;
    await changeUser(direct.ports, operator, tenants.users.sibling, change);
    await untilSessionIsReadAgain();
    await page.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
  });

  it('asks for a code once the user has set up a second factor in another session', async () => {
    await page.clock.install();
    await enter('sibling');
    await page.route('**/console/session', async (route) => {
      // Otherwise, the response could be a 304 without a body.
      const { 'if-none-match': _, ...headers } = route.request().headers();
      const response = await route.fetch({ headers });
      await route.fulfill({ response, json: { ...(await response.json()), secondFactor: true } });
    });
    await untilSessionIsReadAgain();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Go to' }).getByRole('combobox').fill('Change password');
    await page.getByRole('option', { name: 'Change password' }).click();
    await page.getByRole('dialog', { name: 'Change password' }).getByLabel(/^Code/).waitFor();
  });
});
