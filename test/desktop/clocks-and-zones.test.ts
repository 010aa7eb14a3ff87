import { expect } from 'chai';
import { describeBrowser, openPage } from '../support/browser.ts';
import { at } from '../support/clock.ts';
import { fillInKey } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { eventually } from '../support/until.ts';

const aheadMs = 3 * 86_400_000;

function setClockAhead(ms: number): void {
  const { now } = Date;
  Date.now = () => now() + ms;
}

describeBrowser('the console on a computer whose clock is three days ahead', () => {
  const harness = openOnce(() => openPage());
  before(async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    const ends = { 'Of Auckland': '2031-01-31T10:59:59.999Z', 'Over tomorrow': inDays(23.5 / 24) };
    for (const [name, end] of Object.entries(ends)) {
      const { id } = await createKeyOn(harness, harness.tenants.users.account, name);
      const expiry = { expires_at: at(end), expiry_time_zone: 'Pacific/Auckland' };
      await harness.direct.storage.database.write('api_keys').where({ id }).update(expiry);
    }
    await harness.page.addInitScript(setClockAhead, aheadMs);
    await harness.enter('account');
  });

  it("decides by the server's clock whether a key has expired", async () => {
    const row = harness.page.getByRole('row', { name: 'Over tomorrow' });
    await row.getByText('in 23 hours').waitFor();
    await row.getByRole('button').click();
    await harness.page.getByRole('alertdialog').getByText('will stop working immediately').waitFor();
    await harness.page.keyboard.press('Escape');
  });

  it('says that the clock is ahead, and shows when a new key will really expire', async () => {
    const { page } = harness;
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('Your computer’s clock is 3 days ahead of the server’s.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('Right');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    const promised = page.getByRole('dialog').locator('output');
    await eventually(async () => expect(await promised.innerText()).to.include('Works until'));
    const [end] = /\d+ \w+ \d{4}, [\d:]+ [\w/]+/.exec(await promised.innerText()) ?? [];
    await page.getByRole('button', { name: 'Create Key' }).click();
    await page.getByText(`and works until ${end}.`).waitFor();
    await page.getByRole('button', { name: "I've Saved It" }).click();
  });

  it('shows the time zone of an expiration that was chosen in another zone', async () => {
    await harness.page.getByRole('row', { name: 'Of Auckland' }).getByText('31 Jan 2031', { exact: true }).focus();
    await harness.page.getByText(/^31 Jan 2031, 23:59:59 Pacific\/Auckland/).waitFor();
  });
});

function reportNoZone(): void {
  const { resolvedOptions } = Intl.DateTimeFormat.prototype;
  Intl.DateTimeFormat.prototype.resolvedOptions = function (this: Intl.DateTimeFormat) {
    return Object.assign(resolvedOptions.call(this), { timeZone: 'Etc/Unknown' });
  };
}

describeBrowser('the console in a browser that reports no usable time zone', () => {
  const harness = openOnce(() => openPage());

  it('shows times in UTC, says so and offers all zones', async () => {
    const { page } = harness;
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    await page.addInitScript(reportNoZone);
    await harness.enter('account');
    await page.getByRole('row', { name: 'Practice software' }).click();
    await page.getByText('No calls placed in the last 30 days.').waitFor();
    await fillInKey(page, 'New');
    await page.getByText('Your computer reports no time zone that the server knows.').waitFor();
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
    await page.getByRole('button', { name: 'Create Key' }).click();
    await page.getByText('Asia/Tokyo').first().waitFor();
  });
});
