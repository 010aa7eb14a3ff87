import { expect } from 'chai';
import { DateTime } from 'luxon';
import { endOfDay } from '#contract/calendar.ts';
import { customRange } from '#contract/expiry.ts';
import { describeBrowser, openPage, violationsOn } from '../support/browser.ts';
import { fakeClock } from '../support/clock.ts';
import { finders } from '../support/console-harness.ts';
import { openForEach } from '../support/suites.ts';
import { eventually } from '../support/until.ts';

describeBrowser("the form for a new key's expiration", () => {
  const start = '2026-11-21T22:58:30.000Z';
  const clock = fakeClock(start);
  const harness = openForEach(() => {
    clock.set(start);
    return openPage(clock);
  });
  const { button, dialog } = finders(() => harness.page);
  beforeEach(async () => {
    // The page and the core have the same fake time.
    await harness.page.clock.install({ time: new Date(start) });
    await harness.page.route('**/console/**', async (route) => {
      const response = await route.fetch();
      const date = new Date(clock.now()).toUTCString();
      await route.fulfill({ response, headers: { ...response.headers(), date } });
    });
    await harness.enter('account');
    // A response that's still on its way when a test moves the clocks would seem to come from a server with another time.
    await harness.page.waitForLoadState('networkidle');
    await button('Create API key').click();
    await harness.page.getByLabel('Name', { exact: true }).fill('Practice software');
  });

  const words = () => dialog().locator('output');
  const lastDay = () => harness.page.getByLabel('Last day');
  const choose = (choice: string) => harness.page.getByRole('radio', { name: choice, exact: true }).check();
  const create = () => button('Create Key').click();

  async function createdEnd(): Promise<number> {
    await dialog('Save your key').waitFor();
    const [key] = await harness.direct.storage.database.read('api_keys').select('expires_at');
    return key?.expires_at ?? Number.NaN;
  }

  it('shows the same expiration that the core then computes, and why five years end a day early', async () => {
    const reason = harness.page.getByText('A key can’t work for five whole years, so it expires a day earlier.');
    const ends: readonly (readonly [string, string])[] = [
      ['1 Year', 'Works until 21 Nov 2027, 23:59:59 Europe/Berlin (in 1 year)'],
      ['5 Years', 'Works until 20 Nov 2031, 23:59:59 Europe/Berlin (in 4 years, 11 months)'],
    ];
    for (const [choice, expected] of ends) {
      await choose(choice);
      await eventually(async () => expect(await words().innerText()).to.equal(expected));
      if (choice === '1 Year') expect(await reason.count()).to.equal(0);
    }
    await reason.waitFor();
    await create();
    expect(await createdEnd()).to.equal(endOfDay('2031-11-20', 'Europe/Berlin'));
  });

  it('offers those days in a calendar for the keyboard, which closes without the dialog around it', async () => {
    const { page } = harness;
    const calendar = dialog('Calendar');
    await choose('Custom');
    await lastDay().press('Alt+ArrowDown');
    await calendar.getByRole('button', { name: '22 Nov 2026', pressed: false }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('ArrowLeft');
    await calendar.getByRole('button', { name: '22 Nov 2026' }).and(page.locator(':focus')).waitFor();
    expect(await violationsOn(page)).to.deep.equal([]);
    await page.keyboard.press('Escape');
    await calendar.waitFor({ state: 'detached' });
    await lastDay().and(page.locator(':focus')).press('Alt+ArrowDown');
    for (const key of ['Shift+PageDown', 'PageDown', 'ArrowDown', 'End']) await page.keyboard.press(key);
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await lastDay().inputValue()).to.equal('2 Jan 2028'));
    await lastDay().and(page.locator(':focus')).press('ArrowDown');
    await eventually(async () => expect(await words().innerText()).to.match(/^Works until 1 Jan 2028/));
  });

  it('marks a day that it can’t read, but only once the user tries to create the key, and one that’s past on the core', async () => {
    await choose('Custom');
    await lastDay().fill('31 Foo');
    expect(await lastDay().getAttribute('aria-invalid')).to.equal(null);
    await create();
    await lastDay().and(harness.page.locator(':focus')).and(harness.page.locator('[aria-invalid=true]')).waitFor();
    await harness.page.getByText('Enter a day, such as 31 Jan 2027.').waitFor();
    await lastDay().fill('31 Jan 2099');
    await harness.page.getByText('The date must be from 22 Nov 2026 to 20 Nov 2031.').waitFor();
    expect(await harness.page.getByText('22 Nov 2026 to 20 Nov 2031').count()).to.equal(1);
    await lastDay().fill('2026-11-22');
    clock.advance({ hours: 20 });
    await create();
    const { earliest, latest } = customRange(DateTime.fromISO('2026-11-22T18:58:30Z'), 'Europe/Berlin');
    await harness.page.getByText(`Must be a date from ${earliest} to ${latest}.`).waitFor();
    expect(await harness.page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Practice software');
    await lastDay().fill('31 January 2027');
    await create();
    expect(await createdEnd()).to.equal(endOfDay('2027-01-31', 'Europe/Berlin'));
  });

  it('keeps the focus on the chosen expiration when the time zone field reappears', async () => {
    const { page } = harness;
    await choose('1 Year');
    await page.getByRole('button', { name: 'Use another time zone' }).click();
    await page.getByLabel('Time zone').and(page.locator(':focus')).selectOption('Pacific/Auckland');
    const without = page.getByRole('radio', { name: 'No expiration' });
    const oneYear = page.getByRole('radio', { name: '1 Year' });
    await oneYear.focus();
    await page.keyboard.press('ArrowLeft');
    await page.getByLabel('Time zone').waitFor({ state: 'detached' });
    await eventually(async () => expect(await without.isChecked()).to.equal(true));
    await page.keyboard.press('ArrowRight');
    await page.getByLabel('Time zone').waitFor();
    await eventually(async () => expect(await oneYear.evaluate((element) => element === document.activeElement)).to.equal(true));
  });

  it('updates the shown expiration at midnight while the dialog is open', async () => {
    await choose('1 Year');
    await harness.page.getByText('Works until 21 Nov 2027').waitFor();
    clock.advance({ minutes: 2 });
    await harness.page.clock.fastForward('02:00');
    await harness.page.getByText('Works until 22 Nov 2027, 23:59:59 Europe/Berlin').waitFor();
    await create();
    expect(await createdEnd()).to.equal(endOfDay('2027-11-22', 'Europe/Berlin'));
  });
});
