import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { browserForEach, describeBrowser, holdResponse, untilSessionIsReadAgain } from '../support/browser.ts';
import { fillInKey } from '../support/console-harness.ts';
import { createKeyOn, revokeKeyElsewhere } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

describeBrowser('the console in daily work', () => {
  const browser = browserForEach({ isShared: true });
  const { button, link, row, panel, dialog, open } = browser;
  const rows = () => browser.page.locator('tbody tr');
  before(async () => {
    const { account, teammate } = browser.harness.tenants.users;
    for (let index = 0; index < 24; index++)
      await createKeyOn(browser.harness, account, `Key ${index}`, { on: `2026-03-0${1 + (index % 9)}T08:00:00.000Z` });
    await createKeyOn(browser.harness, teammate, 'Of Tom');
  });

  it('finds users, campaigns and IDs with Ctrl+K, also the ID of a revoked key', async () => {
    const { campaign, users } = browser.harness.tenants;
    const { id: revoked } = await createKeyOn(browser.harness, users.teammate, 'Long gone');
    await revokeKeyElsewhere(browser.harness, 'Long gone');
    await open(undefined, 'partner');
    for (const [search, option, address, shown] of [
      [
        'tom@',
        /Tom Teammate.*User · tom@example.com/,
        `#/users/${users.teammate.id}`,
        browser.page.getByRole('complementary', { name: /Tom Teammate/ }),
      ],
      ['remind', /Appointment reminders.*Campaign · Blue Clinic/, `#/calls/${campaign.id}`, browser.page.getByText('No calls yet')],
      [revoked, /Long gone.*Revoked API key/, `#/api-keys/${revoked}`, browser.page.getByRole('complementary', { name: /Long gone/ })],
      [users.sibling.id, /Sue Sibling/, `#/users/${users.sibling.id}`, browser.page.getByRole('complementary', { name: /Sue Sibling/ })],
    ] as const) {
      await browser.page.keyboard.press('Control+k');
      await dialog('Go to').getByRole('combobox').fill(search);
      await dialog('Go to').getByRole('option', { name: option }).click();
      await shown.waitFor();
      expect(new URL(browser.page.url()).hash).to.equal(address);
    }
  });

  it('shows help when ? is pressed, and keeps the chosen colors and number of rows', async () => {
    await open(undefined, 'partner');
    await rows().first().waitFor();
    await browser.page.keyboard.press('?');
    const help = dialog('Help');
    await help.getByText('Next or previous row').waitFor();
    await help.getByLabel('Colors').selectOption('Dark');
    await help.getByRole('button', { name: 'Close' }).click();
    await browser.page.getByLabel('Rows per page').selectOption('50');
    await browser.page.goto(`${browser.harness.core.url}/#/users`);
    await browser.page.reload();
    await link('API keys').click();
    // By default, a page has 20 rows. Other tests create keys, too.
    await eventually(async () => expect(await rows().count()).to.be.within(26, 50));
    expect(await browser.page.evaluate('getComputedStyle(document.documentElement).colorScheme')).to.equal('dark');
  });

  it('closes details when a filter hides their row', async () => {
    await open(undefined, 'partner');
    await row('Of Tom').click();
    await panel().waitFor();
    await browser.page.getByLabel('Search by name').fill('of tom');
    await panel().waitFor();
    await browser.page.getByLabel('Search by name').fill('Key 1');
    await panel().waitFor({ state: 'detached' });
  });

  it("offers to copy the test call's command once its campaign is known, and lets the user choose another", async () => {
    const held = await holdResponse(browser.page, '**/console/campaigns*');
    await open(undefined, 'partner');
    await fillInKey(browser.page, 'Early');
    await button('Create Key').click();
    await browser.page.locator('dialog pre[aria-busy="true"]').waitFor();
    expect(await button('Copy command').count()).to.equal(0);
    await held.release();
    await button('Copy command').waitFor();
    expect(await browser.page.locator('dialog pre').innerText()).to.include(browser.harness.tenants.campaign.id);
    await dialog().getByLabel('Campaign').selectOption('Recalls');
    await browser.page.locator('dialog pre', { hasText: browser.harness.tenants.siblingCampaign.id }).waitFor();
    await button("I've Saved It").click();
  });

  it('creates a user in the viewer’s scope, copies an invitation without the password, exports users with times in the zone of the screen, and saves the list of keys before deleting a user', async () => {
    const { page } = browser;
    await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open(`${browser.harness.core.url}/#/users`, 'partner');
    await button('Create user').click();
    await eventually(async () =>
      expect(await page.getByLabel('Type').getByRole('option').allInnerTexts()).to.deep.equal(['Account user', 'Partner user']),
    );
    const create = () => dialog().getByRole('button', { name: 'Create user' }).click();
    await create();
    await page.getByText('Enter a name.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('Nora New');
    await page.getByLabel('Email', { exact: true }).fill(browser.harness.tenants.users.account.email);
    await page.getByLabel('Account', { exact: true }).selectOption('Green Clinic');
    await create();
    await page
      .getByRole('alert')
      .getByText(/can.t be used/)
      .waitFor();
    await page.getByLabel('Email', { exact: true }).fill('nora@example.com');
    await create();
    const password = await browser.page.getByLabel('One-time password').inputValue();
    await button('Copy invitation').click();
    await dialog().getByText('Copied the invitation.').waitFor({ state: 'attached' });
    const invitation = await browser.clipboardText();
    expect(invitation).to.include('nora@example.com').and.include(browser.harness.core.url).and.not.include(password);
    await button("I've Saved It").click();
    await row(/Nora New.*Account user.*Green Clinic.*0.*Never/).waitFor();
    await row(/Tia Tied.*Partner user.*Blue Clinic/).waitFor();
    const [users] = await Promise.all([page.waitForEvent('download'), button('Export CSV').click()]);
    const zones = readFileSync(await users.path(), 'utf8').match(/(?<=\d\dT\d\d:\d\d[^"]*)(?:Z|[+-]\d\d:\d\d)/g);
    expect(zones).to.include('+01:00').and.not.include('Z');
    await button('Delete Tom Teammate').click();
    const [download] = await Promise.all([
      browser.page.waitForEvent('download'),
      dialog().getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).to.match(/^keys-of-user-127\.0\.0\.1-\d+-\d{4}-\d\d-\d\d\.csv$/);
    expect(readFileSync(await download.path(), 'utf8')).to.match(/"Of Tom","Never","0"\r\n$/);
  });

  it('shows a new call as soon as the user returns to the window', async () => {
    const { keyValue } = await createKeyOn(browser.harness, browser.harness.tenants.users.sibling, 'Tried out');
    await browser.page.clock.install();
    await open(undefined, 'sibling');
    await link('Calls').click();
    await browser.page.getByText('No calls yet').waitFor();
    // No timer fires anymore.
    await browser.page.clock.pauseAt(Date.now() + 60_000);
    await placeCall(browser.harness.core.url, browser.harness.tenants.siblingCampaign.id, keyValue);
    // Repeated, because moving the clock may have started a load, and until it has finished, the user's return doesn't start another.
    await eventually(async () => {
      await browser.page.evaluate("dispatchEvent(new Event('focus'))");
      expect(await browser.page.getByRole('grid', { name: 'Calls' }).count()).to.equal(1);
    });
  });

  it('asks for a code once the user has set up a second factor in another session', async () => {
    await browser.page.clock.install();
    await open();
    await browser.page.route('**/console/session', async (route) => {
      // Otherwise, the response could be a 304 without a body.
      const { 'if-none-match': _, ...headers } = route.request().headers();
      const response = await route.fetch({ headers });
      await route.fulfill({ response, json: { ...(await response.json()), secondFactor: true } });
    });
    const read = await untilSessionIsReadAgain(browser.page);
    await (await read.response())?.finished();
    await browser.page.keyboard.press('Control+k');
    await dialog('Go to').getByRole('combobox').fill('Change password');
    await browser.page.getByRole('option', { name: 'Change password' }).click();
    await dialog('Change password').getByLabel(/^Code/).waitFor();
    const username = dialog('Change password').locator('input[autocomplete=username]');
    expect([await username.inputValue(), await username.isVisible()]).to.deep.equal(['ada@example.com', false]);
  });
});
