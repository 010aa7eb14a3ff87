import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { browserForEach, describeBrowser } from '../support/browser.ts';
import { clickUnderDialog, fillInKey } from '../support/console-harness.ts';
import { createKeyOn, revokeKeyElsewhere } from '../support/sample-data.ts';
import { until } from '../support/until.ts';

describeBrowser('after a failed or lost response', () => {
  const browser = browserForEach();
  const { button, heading, link, dialog, open } = browser;

  it('the chart of calls loads again by itself', async () => {
    const { page } = browser;
    await page.route('**/summary?*', (route) => route.abort(), { times: 1 });
    await page.clock.install();
    await open();
    let isLoaded = false;
    page.on('response', (response) => {
      isLoaded ||= response.url().includes('/summary');
    });
    await link('Calls').click();
    // Repeated, because the page sets its timer only once it has handled the failure.
    await until(async () => {
      await page.clock.runFor(1_000);
      return isLoaded;
    });
  });

  it('signing out cancels a running export', async () => {
    const { page } = browser;
    await browser.signInOnForm('account');
    await link('Activity').click();
    const held = Promise.withResolvers<void>();
    await page.route('**/console/activity.csv*', async (route) => {
      await held.promise;
      await route.continue().catch(() => undefined);
    });
    await button('Export CSV').click();
    await button('Cancel export').waitFor();
    await button('Sign out').click();
    await heading('Sign in').waitFor();
    held.resolve();
    await page.getByText('The export was cancelled. Nothing was saved.').waitFor();
  });

  it('a cancelled export leaves the next one running', async () => {
    const { page } = browser;
    await open(undefined, 'partner');
    await link('Users').click();
    await createKeyOn(browser.harness, browser.harness.tenants.users.teammate, 'Of Tom');
    await button('Delete Tom Teammate').click();
    const exportButton = () => page.getByRole('alertdialog').getByRole('button', { name: 'Export CSV' });
    await exportButton().waitFor();
    const held: PromiseWithResolvers<void>[] = [];
    await page.route('**/deletion*', async (route) => {
      const answer = Promise.withResolvers<void>();
      held.push(answer);
      await answer.promise;
      await route.continue().catch(() => undefined);
    });
    await exportButton().click();
    await until(() => held.length === 1);
    await button('Cancel export').click();
    await exportButton().click();
    await until(() => held.length === 2);
    held[0]?.resolve();
    await page.getByRole('alertdialog').getByText('The export was cancelled. Nothing was saved.').waitFor();
    await button('Cancel export').waitFor();
    const download = page.waitForEvent('download');
    held[1]?.resolve();
    await download;
  });

  const loseResponses = (to: string, isDone: boolean) =>
    browser.page.route(to, async (route) => {
      if (route.request().method() === 'GET') return route.continue();
      if (isDone) await route.fetch();
      return route.abort();
    });

  it('a form says that the key may have been created, and keeps what was typed', async () => {
    await open();
    await loseResponses('**/console/api-keys', true);
    await fillInKey(browser.page, 'In doubt', 'No expiration');
    await button('Create Key').click();
    await browser.page.getByText('The server may still have created the key.').waitFor();
    await browser.page.locator('tr', { hasText: 'In doubt' }).waitFor();
    expect(await browser.page.getByLabel('Name', { exact: true }).inputValue()).to.equal('In doubt');
  });

  describe('with two new keys', () => {
    beforeEach(async () => {
      for (const name of ['One', 'Two']) await createKeyOn(browser.harness, browser.harness.tenants.users.account, name);
      // Before the page sets its first timer.
      await page().clock.install();
      await open();
      for (const name of ['One', 'Two']) await page().getByLabel(`Select ${name}`).check();
    });
    afterEach(async () => {
      for (const name of ['One', 'Two']) await revokeKeyElsewhere(browser.harness, name).catch(() => undefined);
    });
    const page = () => browser.page;

    it('says which keys were revoked although the response was lost, with what they did', async () => {
      await loseResponses('**/revocations', true);
      await button('Revoke 2 keys…').click();
      const asking = dialog('Revoke 2 API keys?');
      await asking.getByLabel('Reason').selectOption('It leaked');
      await asking.getByText('0 calls placed.').waitFor();
      await asking.getByLabel('Also cancel calls not yet dialed').waitFor();
      await asking.getByRole('button', { name: 'Revoke 2 keys' }).click();
      await page().getByText('2 keys were revoked.').first().waitFor();
    });

    for (const isDone of [true, false]) {
      it(`says that a key was ${isDone ? '' : 'not '}revoked after a lost response`, async () => {
        await loseResponses('**/api-keys/*', isDone);
        await button('Revoke One').click();
        await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
        await page()
          .getByText(isDone ? 'One was revoked' : 'The connection was lost, and the server hasn’t done this. Try again.')
          .first()
          .waitFor();
      });
    }

    it('looks up a lost change of limits once the server responds again', async () => {
      await loseResponses('**/api-keys/*', true);
      await page().getByRole('row', { name: 'One' }).click();
      await button('Limit…').click();
      await page().getByLabel('Calls per day').fill('5');
      await page().context().setOffline(true);
      await button('Save').click();
      const refused = page().getByRole('dialog').getByRole('alert');
      await refused.getByText('Can’t reach the server').waitFor();
      await page().context().setOffline(false);
      // By now, the console may have looked it up by itself, and closed the dialog.
      await clickUnderDialog(page(), 'Save');
      await page().getByText('One is now limited: 5 calls per day.').first().waitFor();
    });

    it("deselects a key that no longer matches the filter, because it's in use now", async () => {
      await page().getByLabel('Show').selectOption('never-used');
      await button('Revoke 2 keys…').waitFor();
      await browser.harness.direct.storage.database
        .write('api_keys')
        .where({ name: 'One' })
        .update({ last_used_at: instant(Date.now()) });
      // Repeated, because the page rests longer after a slow load.
      await until(async () => {
        await page().clock.runFor(1_000);
        return (await button('Revoke 1 key…').count()) > 0;
      });
      await button('Revoke 1 key…').click();
      await dialog('Revoke API Key?').getByText('Two').first().waitFor();
    });
  });
});
