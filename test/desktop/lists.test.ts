import { expect } from 'chai';
import { describeBrowser, openPage, openWithKeys, pageForEach } from '../support/browser.ts';
import { finders, untilFocused } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { eventually } from '../support/until.ts';

/** Allowed names that are the hardest to show. */
const hostileNames = ['W'.repeat(200), 'مفتاح النظام', '电话系统 📞', '=HYPERLINK("https://example.com")'];

describeBrowser('the screens of the console', () => {
  const harness = pageForEach();
  const { link, button, row, heading, panel, dialog } = finders(() => harness.page);
  const press = (key: string) => harness.page.keyboard.press(key);
  const names = () => harness.page.locator('tbody th').allInnerTexts();

  it('have one tab stop per list, where arrows, j and k move, also to controls in a row and to the column headers, Enter opens the details, and Escape returns to the row', async () => {
    await openWithKeys(harness, ['One', 'Two', 'Three']);
    await eventually(async () =>
      expect(await harness.page.locator('table [tabindex="0"], table :is(button, input):not([tabindex])').count()).to.equal(1),
    );
    await row('One').focus();
    await press('ArrowDown');
    await press('j');
    await untilFocused(row('Three'));
    await press('k');
    await untilFocused(row('Two'));
    await press('Enter');
    await panel().getByRole('heading', { name: 'Two' }).waitFor();
    await press('ArrowUp');
    await panel().getByRole('heading', { name: 'One' }).waitFor();
    await press('Escape');
    await panel().waitFor({ state: 'detached' });
    await untilFocused(row('One'));
    await press('ArrowRight');
    await press('ArrowRight');
    await harness.page.getByText('1 Sep 2026, 10:00:00 Europe/Berlin').waitFor();
    await row('One').focus();
    await press('ArrowUp');
    await untilFocused(harness.page.getByLabel('Select all on this page'));
  });

  it('can be sorted by column, and keep the order and search when the user returns', async () => {
    await openWithKeys(harness, ['Beta 10', 'beta 9', 'Alpha']);
    await button('Name').click();
    await eventually(async () => expect(await names()).to.deep.equal(['Alpha', 'beta 9', 'Beta 10']));
    await button('Name').click();
    await harness.page.getByLabel('Search by name').fill('BETA');
    await harness.page.getByText('2 keys', { exact: true }).waitFor();
    await link('Activity').click();
    await heading('Activity').waitFor();
    await link('API keys').click();
    await eventually(async () => expect(await names()).to.deep.equal(['Beta 10', 'beta 9']));
    await eventually(async () => expect(await harness.page.getByLabel('Search by name').inputValue()).to.equal('BETA'));
  });

  it('keep every row on one line and every action visible, however long the names, which are shown in full on hover', async () => {
    await openWithKeys(harness, hostileNames, 'partner');
    const heights = await harness.page.locator('tbody tr').evaluateAll((rows) => rows.map((each) => each.getBoundingClientRect().height));
    expect(new Set(heights).size).to.equal(1);
    for (const trash of await button(/^Revoke /).all()) {
      const { x = 0, width = 0 } = (await trash.boundingBox()) ?? {};
      expect(x + width).to.be.within(1, await harness.page.evaluate('innerWidth'));
    }
    await row('WWW').locator('.clip').first().hover();
    await harness.page
      .getByRole('tooltip')
      .getByText(hostileNames[0] ?? '')
      .waitFor();
  });

  it('ask for the email address before deleting a user with more than ten keys', async () => {
    for (let index = 0; index < 11; index++) await createKeyOn(harness, harness.tenants.users.teammate, `Key ${index}`);
    await harness.enter('partner', 'users');
    await button('Delete Tom Teammate').click();
    const confirm = dialog('Delete Tom Teammate?').getByRole('button', { name: 'Delete' });
    await harness.page.getByLabel('Type tom@example.com to delete this user and 11 keys').fill('tom@');
    await eventually(async () => expect(await confirm.getAttribute('aria-disabled')).to.equal('true'));
    await harness.page.getByLabel('Type tom@example.com to delete this user and 11 keys').fill(harness.tenants.users.teammate.email);
    await confirm.click();
    await row('Tom Teammate').waitFor({ state: 'detached' });
  });

  it('can be reached from the palette, which also finds a key by its name, and repeats only the start of what it doesn’t find', async () => {
    await openWithKeys(harness, ['One', 'Two']);
    const palette = dialog('Go to');
    await button('Go to…').click();
    await palette.getByRole('combobox').fill('calls');
    await press('Enter');
    await heading('Calls').waitFor();
    await button('Go to…').click();
    await palette.getByRole('combobox').fill('x'.repeat(10_000));
    const hint = palette.getByText(/^Nothing matches “x{39}…”/);
    await hint.waitFor();
    expect(await hint.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).to.equal(0);
    await palette.getByRole('combobox').fill('two');
    await palette.getByRole('option', { name: /Two/ }).waitFor();
    await press('Enter');
    await untilFocused(row('Two'));
  });

  it('show the tooltip of an element focused with Tab, even if that scrolls the page', async () => {
    const { page } = harness;
    await page.setViewportSize({ width: 1280, height: 420 });
    await openWithKeys(harness, ['One']);
    await row('One').click();
    const created = panel().getByRole('listitem').locator('time').last();
    await created.waitFor();
    await button('Close details').focus();
    const isThere = () => created.evaluate((element) => element === document.activeElement);
    while (!(await isThere())) await page.keyboard.press('Tab');
    // The scroll event comes with the next frame.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    expect(await page.locator('.page').evaluate((element) => element.scrollTop)).to.be.above(0);
    expect(await page.getByRole('tooltip').isVisible()).to.equal(true);
  });
});

describeBrowser('the console on a computer that travels', () => {
  // A profile with its own time zone can't.
  const harness = openOnce(() => openPage(undefined, {}));
  const { button } = finders(() => harness.page);

  it("uses the current time zone, even if it changes while a key's dialog is open, until the user chooses one", async () => {
    const { page } = harness;
    await openWithKeys(harness, ['One']);
    const devtools = await page.context().newCDPSession(page);
    const travelTo = async (timezoneId: string) => {
      await devtools.send('Emulation.setTimezoneOverride', { timezoneId });
      await page.evaluate(() => void dispatchEvent(new Event('focus')));
    };
    await travelTo('Pacific/Auckland');
    await button('Create API key').click();
    await page.getByRole('radio', { name: '1 Year' }).check();
    await page.getByText(/23:59:59 Pacific\/Auckland/).waitFor();
    await travelTo('Asia/Tokyo');
    await page.getByText(/23:59:59 Asia\/Tokyo/).waitFor();
    await page.getByText('Your computer’s time zone.').waitFor();
    await button('Use another time zone').click();
    await page.getByLabel('Time zone').selectOption('Europe/Paris');
    await travelTo('Pacific/Auckland');
    await page.getByText(/23:59:59 Europe\/Paris/).waitFor();
    await devtools.send('Emulation.setTimezoneOverride', { timezoneId: '' });
  });
});
