import { expect } from 'chai';
import { browserForEach, describeBrowser, holdResponse, untilSessionIsReadAgain } from '../support/browser.ts';
import { tryAgain } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually, until } from '../support/until.ts';

const [session, selection] = [/\/console\/session$/, /\/console\/session\/tenancy$/];

describeBrowser('the console in a browser, if a response arrives late,', () => {
  const browser = browserForEach({ isShared: true });
  const { button, dialog, row, panel, open, createKey } = browser;
  const address = (kind: 'account' | 'partner', { id }: { id: string }) => `#/api-keys?tenancy=${kind}/${id}`;
  const switcher = (name: string) => browser.page.getByRole('banner').getByRole('button', { name });
  const shown = (name: string) => switcher(name).waitFor();
  const goTo = (hash: string) => browser.page.evaluate(`location.hash = '${hash}'`);
  const url = () => new URL(browser.page.url()).hash;
  const hold = (path: RegExp, method?: 'PUT') => holdResponse(browser.page, path, method);

  async function openBlue(): Promise<void> {
    await open(`${browser.harness.core.url}/${address('account', browser.harness.tenants.account)}`, 'staff');
    await browser.page.getByRole('row', { name: 'Practice software' }).waitFor();
  }

  async function findGreen(): Promise<void> {
    await browser.page.getByRole('dialog').getByRole('combobox').fill('green');
    await browser.page.getByRole('option', { name: /Green Clinic/ }).waitFor();
  }

  async function chooseGreen(): Promise<void> {
    await switcher('Blue Clinic').click();
    await findGreen();
    await browser.page.keyboard.press('Enter');
    await shown('Green Clinic');
  }

  async function accountOf(name: string): Promise<string | null | undefined> {
    const [key] = await browser.harness.direct.storage.database.read('api_keys').where({ name }).select('account_id');
    return key?.account_id;
  }

  it('creates a key in the tenancy that it shows', async () => {
    await browser.page.clock.install();
    await openBlue();
    const held = await hold(session);
    await untilSessionIsReadAgain(browser.page);
    await held.answered;
    await chooseGreen();
    await held.release();
    await createKey();
    expect(await accountOf('Canary')).to.equal(browser.harness.tenants.siblingAccount.id);
    await button("I've Saved It").click();
  });

  it('stays in the tenancy that the user has chosen since, even if the response is about a change in another tab', async () => {
    await openBlue();
    const held = await hold(session);
    await browser.page.evaluate(`new BroadcastChannel('callkey-session').postMessage(null)`);
    await held.answered;
    await chooseGreen();
    await held.release();
    await eventually(async () => expect(url()).to.equal(address('account', browser.harness.tenants.siblingAccount)));
    await shown('Green Clinic');
  });

  it('keeps the dialog for choosing one open until then, and sends the choice only once', async () => {
    await openBlue();
    let sent = 0;
    browser.page.on('request', (request) => {
      if (request.method() === 'PUT') sent += 1;
    });
    const held = await hold(selection, 'PUT');
    await switcher('Blue Clinic').click();
    await findGreen();
    for (let times = 0; times < 3; times += 1) await browser.page.keyboard.down('Enter');
    await held.answered;
    await browser.page.keyboard.press('Escape');
    await button('Cancel').click({ force: true });
    await browser.page.getByRole('dialog').waitFor();
    await held.release();
    await browser.page.getByRole('dialog').waitFor({ state: 'detached' });
    await shown('Green Clinic');
    expect(sent).to.equal(1);
  });

  it("doesn't follow a link if the user has opened a dialog since, and what they then create is in the tenancy that it shows", async () => {
    const { account, siblingAccount } = browser.harness.tenants;
    await openBlue();
    const held = await hold(selection, 'PUT');
    await goTo(address('account', siblingAccount));
    await held.answered;
    await button('Create API key').click();
    await browser.page.getByLabel('Name', { exact: true }).fill('Typed with care');
    await held.release();
    await eventually(async () => expect(url()).to.equal(address('account', account)));
    await shown('Blue Clinic');
    await browser.page.getByRole('radio', { name: '1 Year', exact: true }).check();
    await button('Create Key').click();
    await browser.page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    expect(await accountOf('Typed with care')).to.equal(account.id);
    await button("I've Saved It").click();
  });

  it('follows the last of several links', async () => {
    const { siblingAccount, otherPartner } = browser.harness.tenants;
    await openBlue();
    const held = await hold(selection, 'PUT');
    await goTo(address('account', siblingAccount));
    await held.answered;
    await goTo(address('partner', otherPartner));
    await shown('Southgate Calling');
    await held.release();
    await shown('Southgate Calling');
    expect(url()).to.equal(address('partner', otherPartner));
  });

  it('opens the tenancy in its address once the server responds again, instead of the one used last', async () => {
    const { account, siblingAccount } = browser.harness.tenants;
    await open(`${browser.harness.core.url}/${address('account', siblingAccount)}`, 'staff');
    await shown('Green Clinic');
    await browser.page.goto('about:blank');
    const body = JSON.stringify({ type: 'urn:callkey:problems#unavailable', title: 'Unavailable', status: 503, detail: 'Busy for now.' });
    let refused = 0;
    await browser.page.route(selection, async (route) => {
      await route.fulfill({ status: 503, headers: { 'content-type': 'application/problem+json' }, body });
      refused += 1;
    });
    await browser.page.goto(`${browser.harness.core.url}/${address('account', account)}`);
    await until(() => refused > 0);
    await browser.page.getByText('Busy for now.').waitFor();
    await browser.page.unroute(selection);
    await tryAgain(browser.page);
    await shown('Blue Clinic');
    expect(url()).to.equal(address('account', account));
  });

  it('creates an account in the partner whose accounts it shows, and not before it knows the partner', async () => {
    await open(`${browser.harness.core.url}/#/directory`, 'staff');
    const held = await hold(/\/directory\/partners\?.*search=[0-9a-f-]{36}/);
    await browser.page.getByRole('row', { name: 'Northwind Voice' }).click();
    await button('Show accounts').click();
    await held.answered;
    await browser.page.getByRole('button', { name: 'Create account', exact: true, disabled: true }).waitFor();
    await held.release();
    await button('Create account').click();
    await browser.page.getByRole('dialog', { name: 'Create account' }).getByText('In Northwind Voice').waitFor();
  });

  it('names the account whose dialing it offers to stop', async () => {
    await open(undefined, 'partner');
    const held = await hold(/\/calling-hours\?/);
    await goTo(`#/protection/calling-hours?scope=account/${browser.harness.tenants.account.id}`);
    await held.answered;
    await button('Stop dialing…').click();
    await dialog('Stop dialing?').getByRole('button', { name: 'Account …' }).waitFor();
    await held.release();
    await dialog('Stop dialing?').getByRole('button', { name: 'Account Blue Clinic' }).waitFor();
  });

  it('shows the new limits of a key, and offers them for its replacement', async () => {
    await createKeyOn(browser.harness, browser.harness.tenants.users.account, 'To be limited');
    await open();
    await row('To be limited').click();
    await button('Limit…').click();
    const calls = dialog('Limit API key').getByLabel('Calls per day');
    await calls.fill('5');
    const held = await Promise.all([hold(/\/console\/api-keys$/), hold(/\/console\/api-keys\/.*timeZone=/)]);
    await button('Save').click();
    await Promise.all(held.map(({ answered }) => answered));
    await button('Limit…').click();
    await eventually(async () => expect(await calls.inputValue()).to.equal('5'));
    await button('Cancel').click();
    await button('Replace…').click();
    await dialog('Replace API key').getByLabel('Copy the old key’s limits: 5 calls per day').waitFor();
    for (const { release } of held) await release();
  });

  describe('and the user searches in Go to', () => {
    async function search(text: string): Promise<void> {
      await open(undefined, 'partner');
      await row('Practice software').waitFor();
      await button('Go to…').click();
      await dialog('Go to').getByRole('combobox').fill(text);
    }

    it('keeps what they have chosen with the arrows', async () => {
      const held = await hold(/\/campaigns\?.*search=key/);
      await search('key');
      await browser.page.keyboard.press('ArrowDown');
      await held.answered;
      await held.release();
      await browser.page.keyboard.press('Enter');
      await dialog('Create API key').waitFor();
    });

    it('opens the first result if they have already pressed Enter', async () => {
      const held = await hold(/\/users\?.*search=tom/);
      await search('tom@');
      await held.answered;
      await browser.page.keyboard.press('Enter');
      await held.release();
      await panel().getByRole('heading', { name: 'Tom Teammate' }).waitFor();
    });
  });

  it("says so if the tenancy in its address doesn't exist", async () => {
    await open(`${browser.harness.core.url}/${address('account', { id: 'none' })}`, 'staff');
    await browser.page.getByText('The account or partner in the address doesn’t exist').waitFor();
  });
});
