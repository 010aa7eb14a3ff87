import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { describeBrowser, type Home, openInChromium, violationsOn } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { openDirect, password } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

const run = promisify(execFile);

describeBrowser('a new administrator', () => {
  let core: RunningCore;
  let home: Home;

  before(async () => {
    const database = await freshDatabase('sqlite');
    core = await startCoreHere(database);
    const direct = await openDirect(database);
    const stan = { email: 'stan@example.com', name: 'Stan', userType: 'staff', accountId: null, partnerId: null } as const;
    const { password: oneTimePassword } = await createUser(direct.ports, operator, stan, null);
    await direct.close();
    home = await openInChromium(core.url);
    await page().getByLabel('Email').waitFor();
    await page().getByLabel('Email').fill(stan.email);
    await page()
      .getByLabel('Password')
      .fill(oneTimePassword ?? '');
    await button('Sign in').click();
  });
  after(async () => {
    await home?.close();
    await core?.close();
  });

  const page = () => home.page;
  const { link, button, heading, row, dialog } = finders(page);
  const focused = () => page().evaluate('document.activeElement.textContent');

  it('can show the password while typing it', async () => {
    const field = page().getByLabel('New password', { exact: true });
    await field.fill(password);
    await eventually(async () => expect(await field.getAttribute('type')).to.equal('password'));
    await button('Show password').click();
    await eventually(async () => expect([await field.getAttribute('type'), await field.inputValue()]).to.deep.equal(['text', password]));
    await button('Hide password').click();
    await eventually(async () => expect(await field.getAttribute('type')).to.equal('password'));
    await button('Change password').click();
  });

  it('enters the organization, account and campaign on one page, and is told what is wrong with a name', async () => {
    await heading('Set up Callkey').waitFor();
    await eventually(async () => expect(await focused()).to.equal('Set up Callkey'));
    expect(await violationsOn(page())).to.deep.equal([]);
    await page().getByLabel('Account', { exact: true }).fill(' ');
    await button('Create and continue').click();
    await page().getByText('Enter a name.').waitFor();
    await page().getByLabel('Account', { exact: true }).fill('Blue Clinic');
    await button('Create and continue').click();
    await heading('No API keys yet').waitFor();
    await eventually(async () => expect(await focused()).to.equal('API keys'));
    await page().getByText('Blue Clinic').first().waitFor();
    // The command has the only campaign.
    await page()
      .getByText(/\/campaigns\/[0-9a-f]{8}-/)
      .waitFor();
  });

  it('creates a key, and places a call with the copied command', async () => {
    await button('Create your first key').click();
    await page().getByLabel('Name', { exact: true }).fill('First');
    await page().getByRole('radio', { name: '1 Year', exact: true }).check();
    // The first look for calls takes 10 seconds by the page's clock, so the next one comes much later, unless the user returns.
    await page().route(
      '**/console/calls?*',
      async (route) => {
        await page().evaluate('((now) => { Date.now = () => now() + 10_000; })(Date.now)');
        await route.continue();
      },
      { times: 1 },
    );
    await button('Create Key').click();
    await heading('Try it: place a test call in My first campaign').waitFor();
    const command = await page().locator('dialog pre:not([aria-busy="true"])').innerText();
    const keyValue = await page().getByLabel('Key value').inputValue();
    await button("I've Saved It").click();
    const details = page().getByRole('complementary', { name: 'Details for First' });
    await details.getByText('Waiting for the first call…').waitFor();
    await details.getByText('DIALER=simulated npm start').waitFor();
    expect(await details.locator('pre:not([aria-busy="true"])').innerText()).to.equal(command);
    expect(await violationsOn(page())).to.deep.equal([]);
    const placing = run('bash', ['-c', command]);
    placing.child.stdin?.end(`${keyValue}\n`);
    expect((await placing).stdout).to.contain('"state":"queued"');
    // The administrator returns from the terminal.
    await page().evaluate("dispatchEvent(new Event('focus'))");
    await details.getByRole('status').getByText('Queued').waitFor();
    // The core writes this within ten seconds, and the page may look for it only six seconds later.
    await row('First').getByText('Never').waitFor({ state: 'detached' });
    await details.getByRole('link', { name: 'The first call' }).click();
    await row('+493023125000').waitFor();
  });

  it('creates, finds, renames and opens entries in the directory', async () => {
    await link('Directory').click();
    await page().getByRole('grid', { name: 'Partners' }).waitFor();
    await row('My organization').click();
    await button('Create account…').click();
    await dialog('Create account').getByText('In My organization').waitFor();
    await dialog().getByLabel('Name', { exact: true }).fill('Red Clinic');
    await dialog().getByRole('button', { name: 'Create', exact: true }).click();
    await page().getByText('Account Red Clinic was created.').waitFor();
    await button('Show accounts').click();
    await row(/Red Clinic/).waitFor();
    await row(/Blue Clinic/).waitFor();
    await button('Create account').click();
    await dialog().getByLabel('Name', { exact: true }).fill('Grün');
    await dialog().getByRole('button', { name: 'Create', exact: true }).click();
    await page().getByText('Account Grün was created.').waitFor();
    await page().getByLabel('Search by name or ID').fill('gruN');
    await row(/Blue Clinic/).waitFor({ state: 'detached' });
    await row(/Grün/).click();
    await button('Rename…').click();
    await dialog().getByLabel('Name', { exact: true }).fill('Green Clinic');
    await dialog().getByRole('button', { name: 'Rename', exact: true }).click();
    await page().getByText('Account renamed to Green Clinic.').waitFor();
    await page().getByLabel('Search by name or ID').fill('green');
    await row(/Green Clinic/).click();
    await link('Open').click();
    await heading('No API keys yet').waitFor();
    await eventually(async () => expect(await page().title()).to.contain('Green Clinic'));
  });
});
