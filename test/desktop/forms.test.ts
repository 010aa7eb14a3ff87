import { expect } from 'chai';
import { describeBrowser, holdResponse, pageForEach } from '../support/browser.ts';
import { fillInKey, finders } from '../support/console-harness.ts';
import { ask } from '../support/http.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { createKey, signIn } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

describeBrowser('a form in the console', () => {
  const harness = pageForEach();
  const { button, link } = finders(() => harness.page);

  async function openProtection(what: string): Promise<void> {
    await harness.enter('partner', 'protection');
    await button(what).click();
  }

  async function openNumbers(): Promise<void> {
    await openProtection('Numbers');
    await harness.page.getByLabel('Only these').check();
  }

  it('refuses to limit calls to no countries, because that would allow all', async () => {
    await openNumbers();
    await harness.page.getByLabel('Country codes').press('Enter');
    await harness.page.getByText('Enter a country.').waitFor();
    expect(await harness.direct.storage.database.read('protection_rules')).to.deep.equal([]);
  });

  async function chooseActivity(): Promise<void> {
    const { page } = harness;
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('Activity');
    await page.getByRole('option', { name: 'Activity' }).click();
  }

  async function putAsSomeoneElse(what: string, body: object): Promise<void> {
    const { core, tenants } = harness;
    const cookie = await signIn(core.url, tenants.users.partner.email);
    const { status, text } = await ask('PUT', `${core.url}/console/${what}?scope=partner&id=${tenants.partner.id}`, { cookie, body });
    expect(status, text).to.equal(200);
  }

  it('keeps the countries that someone else saves while the user chooses kinds of numbers', async () => {
    await openProtection('Numbers');
    const kinds = harness.page.getByRole('group', { name: 'Kinds' });
    await kinds.getByLabel('Same as').setChecked(false);
    await kinds.getByLabel('Allow premium rate').check();
    await putAsSomeoneElse('numbers', { countries: ['DE'], kinds: ['satellite'] });
    await button('Refresh').click();
    const shown = async () => expect(await harness.page.getByLabel('Country codes').inputValue()).to.equal('DE');
    await eventually(shown);
    await button('Save').click();
    await harness.page.getByText('Allowed numbers were saved.').waitFor();
    await shown();
    expect(await kinds.getByLabel('Allow premium rate').isChecked()).to.equal(true);
  });

  describe('for rules that someone else has just saved', () => {
    it('keeps these hours and those that the user typed, and warns before it replaces the former', async () => {
      const { page } = harness;
      const stored = async () => (await harness.direct.ports.stores.rules.findRules(harness.tenants.partner.id)).hours;
      await openProtection('Calling hours');
      await button('Set hours…').click();
      await page.getByLabel('From').fill('10:30');
      const holiday = { prefix: '', date: '2099-12-25', closed: true } as const;
      await putAsSomeoneElse('calling-hours', { rules: [holiday] });
      await button('Save').click();
      await page.getByText('These hours were changed after you opened this dialog.').waitFor();
      expect(await page.getByText('Someone else changed these rules').count()).to.equal(0);
      expect(await stored()).to.deep.equal([holiday]);
      expect(await page.getByLabel('From').inputValue()).to.equal('10:30');
      await button('Save').click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect((await stored())?.map(({ from }) => from)).to.deep.equal(['10:30']);
    });

    it('keeps these countries and those that the user typed, and warns before it replaces the former', async () => {
      const { page } = harness;
      const stored = async () => (await harness.direct.ports.stores.rules.findRules(harness.tenants.partner.id)).countries;
      await openNumbers();
      await page.getByLabel('Country codes').fill('pl');
      await page.getByText('Poland').waitFor();
      await putAsSomeoneElse('numbers', { countries: ['FR'], kinds: ['satellite'] });
      await button('Save').click();
      await page.getByText('These settings were changed after you started editing them.').waitFor();
      expect(await stored()).to.deep.equal(['FR']);
      expect(await page.getByLabel('Country codes').inputValue()).to.equal('pl');
      await button('Save').click();
      await page.getByText('Allowed numbers were saved.').waitFor();
      expect(await stored()).to.deep.equal(['PL']);
    });

    it('shows these countries if the user changed only kinds of numbers, and then saves both', async () => {
      const { page } = harness;
      await putAsSomeoneElse('numbers', { countries: [], kinds: [] });
      await openProtection('Numbers');
      await page.getByLabel('Allow premium rate').check();
      await putAsSomeoneElse('numbers', { countries: ['SE'], kinds: [] });
      await button('Save').click();
      await page.getByText('Someone else changed these rules in the meantime.').waitFor();
      expect(await page.getByLabel('Country codes').inputValue()).to.equal('SE');
      await button('Save').click();
      await page.getByText('Allowed numbers were saved.').waitFor();
      const { countries, kinds } = await harness.direct.ports.stores.rules.findRules(harness.tenants.partner.id);
      expect([countries, kinds]).to.deep.equal([['SE'], ['premium-rate']]);
    });
  });

  it('asks before it discards weekdays, which are chosen with buttons', async () => {
    await openProtection('Calling hours');
    await button('Set hours…').click();
    await button('Sat').click();
    await harness.page.keyboard.press('Escape');
    await harness.page.getByText('Discard your input?').waitFor();
    await button('Discard').click();
    await harness.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it("keeps what's typed on the screen until the user decides to leave by a link, Back, another tab or the palette", async () => {
    const { page } = harness;
    await harness.enter('partner');
    const question = page.getByRole('alertdialog', { name: 'Discard your input?' });
    for (const leave of [() => link('API keys').click(), () => page.goBack(), () => button('Pace and limits').click(), chooseActivity]) {
      await link('Protection').click();
      await button('Numbers').click();
      await page.getByLabel('Only these').check();
      await page.getByLabel('Country codes').fill('de, at');
      await leave();
      await question.waitFor();
      expect(await page.getByLabel('Country codes').inputValue(), String(leave)).to.equal('de, at');
      await question.getByRole('button', { name: 'Go back' }).click();
      await question.waitFor({ state: 'detached' });
      expect(page.url()).to.include('#/protection/numbers');
      await leave();
      await question.getByRole('button', { name: 'Discard' }).click();
      await page.getByLabel('Country codes').waitFor({ state: 'detached' });
    }
  });

  it('asks before a reload discards what was typed, and no longer once it was saved', async () => {
    const { page } = harness;
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    await openNumbers();
    await page.getByLabel('Country codes').fill('de, at');
    await page.reload();
    await page.getByLabel('Only these').check();
    await page.getByLabel('Country codes').fill('de');
    await button('Save').click();
    await page.getByText('Allowed numbers were saved.').waitFor();
    await page.reload();
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    expect(asked).to.deep.equal(['beforeunload']);
  });

  it('stays open when Escape closes a picker inside it', async () => {
    await openProtection('Add numbers');
    await harness.page.getByLabel('Phone numbers').fill('+49 30 12345678');
    await harness.page.getByRole('dialog').locator('.opener').click();
    const picker = harness.page.getByRole('dialog', { name: 'Choose' });
    await picker.waitFor();
    await harness.page.keyboard.press('Escape');
    await picker.waitFor({ state: 'detached' });
    expect(await harness.page.getByLabel('Phone numbers').inputValue()).to.equal('+49 30 12345678');
  });

  it('stays open while a key is being created', async () => {
    const { page } = harness;
    await harness.enter('account');
    await fillInKey(page, 'Slow', 'No expiration');
    const held = await holdResponse(page, '**/console/api-keys', 'POST');
    await button('Create Key').click();
    await page.getByText('Creating…').waitFor();
    await page.keyboard.press('Escape');
    await button('Cancel').click({ force: true });
    await held.release();
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
  });

  it('isn’t closed by a late response to an earlier one', async () => {
    const { page } = harness;
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Found late');
    await harness.enter('account');
    await button('Which key is this?').click();
    await page.getByLabel('Key value').fill(keyValue);
    const held = await holdResponse(page, /identify/, 'POST');
    await button('Find key').click();
    await page.keyboard.press('Escape');
    await button('Create API key').click();
    await page.getByLabel('Name', { exact: true }).fill('Typed with care');
    await held.release();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Typed with care');
  });

  it('clears the result for a number when another number is typed', async () => {
    await openProtection('Check a number…');
    await harness.page.getByLabel('Phone number').fill('+49 30 12345678');
    await button('Check').click();
    const verdict = harness.page.getByText('Can be called now');
    await verdict.waitFor();
    await harness.page.getByLabel('Phone number').fill('+49 30 1234567');
    await verdict.waitFor({ state: 'detached' });
  });

  it("warns next to a replacement's value if it didn't get the limits of the old key", async () => {
    const { core, tenants } = harness;
    const cookie = await signIn(core.url, tenants.users.account.email);
    const { id } = await createKey(core.url, cookie, 'Limited');
    await ask('PATCH', `${core.url}/console/api-keys/${id}`, { cookie, body: { callsPerDay: 5 } });
    await harness.enter('account');
    await harness.page.getByRole('row', { name: 'Limited' }).click();
    await button('Replace…').click();
    const body = JSON.stringify({ type: 'x#unavailable', title: 'Unavailable', status: 503, detail: 'The database is unavailable.' });
    await harness.page.route('**/console/api-keys/*', (route) =>
      route.request().method() === 'PATCH'
        ? route.fulfill({ status: 503, contentType: 'application/problem+json', body })
        : route.continue(),
    );
    await button('Create Key').click();
    const dialog = harness.page.getByRole('alertdialog', { name: 'Save your key' });
    await dialog.getByText('This key couldn’t be limited.').waitFor();
  });

  it("doesn't change the first day of a range while its last day is typed, and marks a day that it can't read", async () => {
    const { page } = harness;
    await harness.enter('account', 'activity');
    await page.getByLabel('Days', { exact: true }).selectOption('Custom…');
    await page.getByLabel('From day').fill('2026-11-01');
    await page.getByLabel('To day').pressSequentially('11 nov 2026');
    await page.getByLabel('To day').blur();
    await eventually(async () => expect(await page.getByLabel('To day').inputValue()).to.equal('11 Nov 2026'));
    expect(await page.getByLabel('From day').inputValue()).to.equal('1 Nov 2026');
    expect(page.url()).to.match(/from=2026-11-01&to=2026-11-11$/);
    await page.getByLabel('To day').fill('3/4/2027');
    await page.getByLabel('To day').blur();
    await page.getByText('Enter a day, such as 31 Jan 2027.').waitFor();
    await page.getByLabel('Days', { exact: true }).selectOption('Any day');
    await page.getByLabel('To day').waitFor({ state: 'detached' });
  });

  it("says if the browser refuses to copy, and still says it once the key's use has been loaded", async () => {
    const { page } = harness;
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    await harness.enter('account');
    await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new DOMException('no', 'NotAllowedError'))");
    const { promise: clicked, resolve: load } = Promise.withResolvers<void>();
    await page.route('**/console/api-keys/*?timeZone=*', (route) => clicked.then(() => route.continue()));
    await page.getByRole('row', { name: 'Practice software' }).first().click();
    await button('Copy ID').click();
    const message = page.getByText('Your browser blocked copying.');
    await message.waitFor();
    load();
    await page.getByText('Accepted from').waitFor();
    expect(await message.count()).to.equal(1);
    await button('Copy ID').and(page.locator(':focus')).waitFor();
  });
});
