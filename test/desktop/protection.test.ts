import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { setHours } from '../../core/domain/protection/rules.ts';
import { describeBrowser, pageForEach } from '../support/browser.ts';
import { finders, type UserName, untilFocused } from '../support/console-harness.ts';

describeBrowser("the console's Protection screen", () => {
  const harness = pageForEach();

  const { link, button, row } = finders(() => harness.page);
  const openAs = (user: UserName) => harness.enter(user, 'protection');
  async function openHours(): Promise<void> {
    await openAs('partner');
    await button('Calling hours').click();
    await button('Set hours…').click();
  }
  async function add(numbers: string): Promise<void> {
    await button('Add numbers').click();
    await harness.page.getByLabel('Phone numbers').fill(numbers);
    await button('Add').click();
  }

  it('adds a pasted list, shows who added it, and removes a number with a reason', async () => {
    const { page } = harness;
    await openAs('partner');
    await add('Phone\n+49 30 12345678\n+33 1 23 45 67 89');
    const dialog = page.getByRole('dialog', { name: 'Result of each line' });
    await dialog.getByText('Added 2 numbers.').waitFor();
    const rows = await dialog.locator('tbody tr').allInnerTexts();
    expect(rows.map((text) => text.split(/[\t\n]+/))).to.deep.equal([
      ['Phone', '1', 'Skipped: not a number'],
      ['+49 30 12345678', '2', 'Added'],
      ['+33 1 23 45 67 89', '3', 'Added'],
    ]);
    await button('Close').click();
    await row('+493012345678').getByText('Pat Partner').waitFor();
    await page.getByLabel('Search by number').fill('+49 (0)30');
    await row('+33123456789').waitFor({ state: 'detached' });
    await button('Remove +493012345678').click();
    await page.getByText('unless another list or rule forbids them').waitFor();
    await button('Remove').click();
    await page.getByText('Enter the reason.').waitFor();
    await page.getByLabel('Why may it be called again?').fill('She asked for a call.');
    await button('Remove').click();
    await page.getByText('+493012345678 may be called again, unless another list or rule forbids it.').first().waitFor();
    await page.getByText('No matching numbers').waitFor();
    await link('Activity').click();
    await page.getByText('She asked for a call.').waitFor();
  });

  it('in a narrow window, shows the whole note of a number and hint of the search, and leaves space around bars and fields of hours', async () => {
    const { page, direct, tenants } = harness;
    await page.setViewportSize({ width: 390, height: 800 });
    await openAs('partner');
    await button('Add numbers').click();
    await page.getByLabel('Phone numbers').fill('+49 30 12345678');
    await page.getByLabel('Note (optional)').fill('Asked us by letter to stop');
    await button('Add').click();
    const note = row('+493012345678').getByText('Asked us by letter to stop');
    await note.waitFor();
    expect(await note.evaluate((each) => each.scrollWidth - each.clientWidth)).to.equal(0);
    const search = page.getByLabel('Search by number');
    await search.waitFor();
    const room = await search.evaluate((field) => {
      if (!(field instanceof HTMLInputElement)) return 0;
      const canvas = new OffscreenCanvas(1, 1).getContext('2d');
      if (!canvas) return 0;
      const { font, paddingInlineStart, paddingInlineEnd } = getComputedStyle(field);
      canvas.font = font;
      const padding = Number.parseFloat(paddingInlineStart) + Number.parseFloat(paddingInlineEnd);
      return field.clientWidth - padding - canvas.measureText(field.placeholder).width;
    });
    expect(room).to.be.greaterThan(0);
    await setHours(direct.ports, operator, { scope: 'partner', id: tenants.partner.id }, [
      { prefix: '', days: ['mon', 'tue'], from: '09:00', to: '20:00' },
    ]);
    await button('Calling hours').click();
    const gap = await page
      .locator('.day-bar')
      .nth(1)
      .evaluate((bar) => {
        const above = bar.closest('tr')?.previousElementSibling?.querySelector('td span');
        return bar.getBoundingClientRect().top - (above?.getBoundingClientRect().bottom ?? 0);
      });
    expect(gap).to.be.at.least(8);
    await button('Change hours…').click();
    const prefix = await page.getByLabel('Numbers that start with').evaluate((field) => {
      const text = new Range();
      if (field.previousSibling) text.selectNode(field.previousSibling);
      return field.getBoundingClientRect().left - text.getBoundingClientRect().right;
    });
    expect(prefix).to.be.at.least(8);
  });

  it('removes several numbers together', async () => {
    const { page } = harness;
    await openAs('partner');
    await add('+49 30 12345678\n+49 30 12345679');
    await button('Close').click();
    await page.getByRole('columnheader', { name: 'Number' }).getByRole('button').click();
    for (const phone of ['+493012345678', '+493012345679']) await page.getByLabel(`Select ${phone}`).check();
    await button('Remove 2 numbers…').click();
    await page.getByRole('alertdialog').getByText('+493012345679').waitFor();
    await page.getByLabel('Why may they be called again?').fill('They asked for it.');
    await button('Remove 2 numbers').click();
    await page.getByText('2 numbers may be called again').first().waitFor();
    expect(await harness.direct.storage.database.read('do_not_call')).to.deep.equal([]);
  });

  it('marks only what can’t be read: a number, then the country, then the end date', async () => {
    const { page } = harness;
    await openAs('partner');
    const numbers = page.getByLabel('Phone numbers');
    await add('+49 30 23125001\n030 23125003');
    await page.getByText(/^Line 2: /).waitFor();
    expect(await numbers.getAttribute('aria-invalid')).to.equal('true');
    await page.getByLabel('Country of numbers').fill('XX');
    await button('Add').click();
    await page.getByText('Enter the two letters of a country, such as DE.').waitFor();
    expect(await numbers.getAttribute('aria-invalid')).to.equal(null);
    await page.getByLabel('Country of numbers').fill(' de ');
    await page.getByLabel('Ends (optional)').fill('3/4/2027');
    await button('Add').click();
    await untilFocused(page.getByLabel('Ends (optional)'));
    expect(await numbers.getAttribute('aria-invalid')).to.equal(null);
    await page.getByLabel('Ends (optional)').fill('');
    await button('Add').click();
    await page.getByText('Added 2 numbers.').first().waitFor();
  });

  it('says how many numbers were added if a later part of a long list fails, and then how many it has and how many match', async () => {
    const { page } = harness;
    await openAs('partner');
    let requests = 0;
    await page.route('**/console/do-not-call', (route) => {
      requests += route.request().method() === 'POST' ? 1 : 0;
      return requests === 2 ? route.fulfill({ status: 502 }) : route.continue();
    });
    await add(Array.from({ length: 150 }, (_, n) => `+49301234${1000 + n}`).join('\n'));
    await page.getByText('Added 100 of 150 numbers so far.').waitFor();
    await page.getByRole('alert').first().waitFor();
    await page.unrouteAll();
    await button('Add').click();
    await page.getByText('Added 50 numbers. 100 numbers were already on the list.').first().waitFor();
    await button('Close').click();
    await page.getByText('50 of 150 numbers').waitFor();
    await page.getByLabel('Search by number').fill('+493012341059');
    await page.getByText('1 number', { exact: true }).waitFor();
    await page.getByLabel('Search by number').fill('');
    await button('Show more numbers').click();
    await page.getByText('100 of 150 numbers').waitFor();
  });

  it("applies an account's opt-outs to all of its partner's accounts", async () => {
    await openAs('partner');
    await button('Opt-outs…').click();
    await button('Account Blue Clinic').click();
    await harness.page.getByRole('option', { name: /Green Clinic/ }).click();
    await harness.page.getByLabel('All accounts of the partner stop calling them').check();
    await button('Save').click();
    await harness.page.getByText('The setting for opt-outs during calls from Green Clinic was changed.').first().waitFor();
    const { doNotCall } = harness.direct.ports.stores;
    const { account, siblingAccount } = harness.tenants;
    expect([await doNotCall.optOutScope(siblingAccount.id), await doNotCall.optOutScope(account.id)]).to.deep.equal(['partner', 'account']);
  });

  it('asks which column of a file to read if several have numbers, and adds those of the chosen one', async () => {
    const { page } = harness;
    await openAs('partner');
    await button('Add numbers').click();
    const text = Buffer.from('Name;Phone;Mobile\nZoë;+493012345678;+33123456789\nAda;+493012345679;\n', 'latin1');
    await page.getByLabel('Or choose a CSV file').setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer: text });
    await page.getByText("Line 2: There's another phone number in column Mobile: +33123456789").waitFor();
    await page.getByLabel('Column of the file').selectOption('Phone');
    await page.getByText('Column Phone: 2 numbers.').waitFor();
    await button('Add').click();
    await page.getByText('Added 2 numbers.').first().waitFor();
    expect(await harness.direct.storage.database.read('do_not_call').orderBy('phone').pluck('phone')).to.deep.equal([
      '+493012345678',
      '+493012345679',
    ]);
  });

  it('lets account users add numbers to their account, but not remove them', async () => {
    await openAs('account');
    await add('+49 30 12345678');
    await row('+493012345678').waitFor();
    expect(await button('Remove +493012345678').count()).to.equal(0);
    await button('Calling hours').click();
    await harness.page.getByText('No calling hours').waitFor();
    expect(await button('Set hours…').count()).to.equal(0);
  });

  it('sets hours, which accounts inherit, and explains why a number isn’t called', async () => {
    const { page } = harness;
    await openHours();
    // With hours that never include the current time, the check below has the same result at any time.
    await button('Remove this rule').click();
    await button('Add a date').click();
    await page.getByLabel('Date').fill('2099-12-25');
    await button('Add hours').click();
    await page.getByLabel('From').fill('09:00');
    await page.getByLabel('To', { exact: true }).fill('08:00');
    await button('Save').click();
    await page.getByText('The end must be later than the start.').waitFor();
    await page.getByLabel('To', { exact: true }).fill('20:00');
    await button('Save').click();
    await page.getByText('25 Dec 2099', { exact: true }).waitFor();
    await row('Monday').getByText('09:00–20:00').waitFor();
    await button('Partner Northwind Voice').click();
    await page.getByRole('option', { name: /Blue Clinic Account/ }).click();
    await page.getByText('Inherited from the partner Northwind Voice.').waitFor();
    await page.reload();
    await button('Account Blue Clinic').waitFor();
    await page.getByText('Inherited from the partner Northwind Voice.').waitFor();
    await button('Check a number…').click();
    await page.getByLabel('Phone number').fill('+1 800 555 1234');
    await button('Check').click();
    await page.getByText('Calling hours apply, but the number’s time zone is unknown.').waitFor();
  });

  it('marks the box of hours that it refuses, and describes only what can be saved', async () => {
    const { page } = harness;
    const complaints: string[] = [];
    page.on('console', (message) =>
      complaints.push(...(message.type() === 'error' && /negative|NaN/.test(message.text()) ? [message.text()] : [])),
    );
    const [prefix, from, to] = [
      page.getByLabel('Numbers that start with'),
      page.getByLabel('From'),
      page.getByLabel('To', { exact: true }),
    ];
    const marked = () => page.locator('dialog input[aria-invalid=true]').evaluateAll((inputs) => inputs.map(({ ariaLabel }) => ariaLabel));
    await openHours();
    await from.fill('xx');
    await page.getByText('All numbers: never.').waitFor();
    await button('Save').click();
    await page.getByText('Must be a time from 00:00 to 24:00').waitFor();
    expect(await marked()).to.deep.equal(['From']);
    await from.fill('14:00');
    await to.fill('10:00');
    await page.getByText('All numbers: never.').waitFor();
    await button('Save').click();
    await page.getByText('The end must be later than the start.').waitFor();
    expect(await marked()).to.deep.equal(['To']);
    await to.fill('18:00');
    await button('Add hours').click();
    await prefix.fill('0049');
    await page.getByText('Times are in the time zone').waitFor({ state: 'hidden' });
    await button('Save').click();
    await page.getByText('Must be the beginning of a number').waitFor();
    expect(await page.getByText('Must be the beginning of a number').count()).to.equal(1);
    expect(await marked()).to.deep.equal(['Numbers that start with']);
    expect(complaints).to.deep.equal([]);
  });

  it('adds hours for the numbers and days of their neighbor, moves to what was added, says what will hold, and saves each rule once', async () => {
    const { page, direct } = harness;
    await openHours();
    await page.getByLabel('Numbers that start with').fill('+49');
    await page.getByLabel('To', { exact: true }).fill('12:00');
    await button('Add hours').click();
    await page.keyboard.type('13:00');
    await page.getByRole('dialog').getByRole('row', { name: 'Tuesday' }).getByText('09:00–12:00, 13:00–16:00').waitFor();
    await page.getByText('+49: Monday to Friday 09:00–12:00 and 13:00–16:00; all other numbers: at any time.').waitFor();
    await button('Add hours').click();
    await page.keyboard.type('13:00');
    await page.getByLabel('To', { exact: true }).nth(2).fill('16:00');
    await button('Add a date').click();
    await page.keyboard.type('xmas');
    await button('Save').click();
    await page.getByText('Enter a day, such as 31 Jan 2027.').waitFor();
    expect(await page.getByLabel('Date').getAttribute('aria-invalid')).to.equal('true');
    await page.getByLabel('Date').fill('2099-12-25');
    await button('Save').click();
    await page.getByText('Calling hours were saved.').first().waitFor();
    const [row] = await direct.storage.database.read('protection_rules').whereNotNull('hours');
    expect(JSON.parse(row?.hours ?? '').map(({ prefix }: { prefix: string }) => prefix)).to.deep.equal(['+49', '+49', '+49']);
  });

  it('says how many rules are allowed if there are too many', async () => {
    const { page } = harness;
    await openHours();
    const first = Date.UTC(2099, 0, 1);
    const dates = Array.from({ length: 500 }, (_, n) => new Date(first + n * 86_400_000).toISOString().slice(0, 10));
    const rules = JSON.stringify(dates.map((date) => ({ prefix: '', date, closed: true })));
    await page
      .getByLabel('Or load a JSON file')
      .setInputFiles({ name: 'rules.json', mimeType: 'application/json', buffer: Buffer.from(rules) });
    // Until the file has been read, the button adds to what the file then replaces.
    await page.getByRole('group', { name: 'On these dates' }).waitFor();
    await button('Add hours').click();
    await button('Save').click();
    await page.getByText('Must contain at most 500 rules.').waitFor();
  });
});
