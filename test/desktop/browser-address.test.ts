import { expect } from 'chai';
import { DateTime } from 'luxon';
import { instant } from '../../core/domain/instant.ts';
import { browserForEach, describeBrowser, holdResponse, openPage } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { textAt } from '../support/http.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { password, placeCall } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

describeBrowser('the console in a browser', () => {
  const browser = browserForEach();
  const { button, heading, link, row, panel, goHomeFromCalls, open } = browser;
  const path = () => browser.page.evaluate('location.pathname + location.search + location.hash');

  describe('the address', () => {
    it('contains the screen, and Back and Forward move between screens', async () => {
      await open();
      expect(await path()).to.equal('/#/api-keys');
      await link('Calls').click();
      await link('Activity').click();
      expect(await path()).to.equal('/#/activity');
      await browser.page.goBack();
      await heading('Calls').waitFor();
      await browser.page.goBack();
      await heading('API keys').waitFor();
      await browser.page.goForward();
      await heading('Calls').waitFor();
      await eventually(async () => expect(await browser.page.evaluate('document.activeElement.textContent')).to.equal('Calls'));
    });

    it('contains the campaign whose calls are shown, and Back returns to all campaigns', async () => {
      const { core, tenants } = browser.harness;
      const { keyValue } = await createKeyOn(browser.harness, tenants.users.account, 'Caller');
      // A list without calls has no search.
      await placeCall(core.url, tenants.campaign.id, keyValue);
      await open(core.url, 'partner');
      await link('Calls').click();
      await browser.page.getByLabel('Campaign').selectOption('Appointment reminders');
      await browser.page.waitForURL(/#\/calls\/[0-9a-f-]{36}$/);
      const address = browser.page.url();
      await eventually(async () => expect(await browser.page.getByLabel('Campaign').inputValue()).to.equal(address.split('/').at(-1)));
      await browser.page.goBack();
      await browser.page
        .getByLabel('Campaign')
        .getByText('All campaigns')
        .and(browser.page.locator(':checked'))
        .waitFor({ state: 'attached' });
      expect(await path()).to.equal('/#/calls');
      await browser.page.goForward();
      await browser.page.getByPlaceholder('Contact, phone number, or request ID').waitFor();
      await browser.page.goto('about:blank');
      await open(address, 'partner');
      await browser.page.getByPlaceholder('Contact, phone number, or request ID').waitFor();
    });

    it('says that its screen doesn’t exist or isn’t allowed, and shows the home screen', async () => {
      const { url } = browser.harness.core;
      const says = browser.page.getByText('This screen doesn’t exist, or you don’t have access to it.').first();
      await open(`${url}/#/calls`);
      await heading('Calls').waitFor();
      expect(await says.count()).to.equal(0);
      for (const hash of ['#/nonsense', '#//evil.example', '#/users']) {
        await browser.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
        await browser.page.waitForURL(/#\/api-keys$/);
        await heading('API keys').waitFor();
        await says.waitFor();
        await link('Calls').click();
        await heading('Calls').waitFor();
      }
      await open(`${url}/#/nonsense`);
      await says.waitFor();
      await heading('API keys').waitFor();
    });

    it("opens a key, user or call that isn't on the loaded page of the list, and says if it no longer exists", async () => {
      const { keyValue, id } = await createKeyOn(browser.harness, browser.harness.tenants.users.account, 'Linked');
      const contactId = textAt(await placeCall(browser.harness.core.url, browser.harness.tenants.campaign.id, keyValue), 'contactId');
      await open(`${browser.harness.core.url}/#/calls/${browser.harness.tenants.campaign.id}/${contactId}?state=failed`, 'partner');
      await panel().getByRole('link', { name: browser.harness.tenants.campaign.name }).waitFor();
      await panel().getByText(browser.harness.tenants.users.account.name, { exact: true }).waitFor();
      await panel().getByRole('link', { name: 'Linked' }).click();
      await panel().getByRole('heading', { name: 'Linked' }).waitFor();
      expect(await path()).to.equal(`/#/api-keys/${id}`);
      await browser.page.goto(`${browser.harness.core.url}/#/users/${browser.harness.tenants.users.teammate.id}?search=zzz`);
      await panel().getByRole('heading', { name: 'Tom Teammate' }).waitFor();
      await link('Show activity').click();
      await browser.page.getByRole('heading', { name: 'Activity', exact: true }).waitFor();
      await browser.page.goto(`${browser.harness.core.url}/#/api-keys/gone`);
      await panel().getByText('This key doesn’t exist, or you don’t have access to it.').waitFor();
    });

    it('shows no search or filters for a list without calls, even while it loads', async () => {
      const { core, tenants } = browser.harness;
      const held = await holdResponse(browser.page, /\/calls$/);
      await open(`${core.url}/#/calls/${tenants.siblingCampaign.id}`, 'partner');
      await held.answered;
      await browser.page.getByText('Loading calls…').waitFor({ state: 'attached' });
      expect(await browser.page.getByRole('search').count()).to.equal(0);
      await held.release();
      await browser.page.getByText('No calls').first().waitFor();
      expect(await browser.page.getByRole('search').count()).to.equal(0);
    });

    it("reveals nothing about a campaign or user that the viewer doesn't have access to: the screen says that nothing was found", async () => {
      const { siblingCampaign, users } = browser.harness.tenants;
      await open(`${browser.harness.core.url}/#/calls/${siblingCampaign.id}?state=failed`);
      await heading('Campaign not found').waitFor();
      await button('Show all calls').click();
      await browser.page.getByLabel('Search').waitFor();
      expect(await path()).to.equal('/#/calls');
      await browser.page.goto(`${browser.harness.core.url}/#/activity?actor=${users.sibling.id}`);
      await heading('No matching activity').waitFor();
      await browser.page.getByLabel('User').getByText('Selected user').and(browser.page.locator(':checked')).waitFor({ state: 'attached' });
    });

    it('contains the filters of calls and activity, with which the core is asked, and the parent in the directory', async () => {
      const { page, harness } = browser;
      const { id } = harness.tenants.campaign;
      /** Waits for a request whose query has all of these parts. */
      const asked = (path: string, ...parts: string[]) =>
        page.waitForRequest((request) => request.url().includes(path) && parts.every((part) => request.url().includes(part)));
      const filters = ['state=failed', 'from=2026-11-01', 'to=2026-11-08', 'apiKey=none', 'search=%2B4930'];
      const calls = asked(`/campaigns/${id}/calls?`, ...filters, 'timeZone=Europe%2FBerlin');
      await open(`${harness.core.url}/#/calls/${id}?${filters.join('&')}`, 'partner');
      await calls;
      await eventually(async () => expect(await page.getByLabel('From day').inputValue()).to.equal('1 Nov 2026'));
      await eventually(async () => expect(await page.getByLabel('State').inputValue()).to.equal('failed'));
      const events = asked('/console/activity?', 'action=user.added', 'to=2026-11-08', 'timeZone=Europe%2FBerlin');
      await page.goto(`${harness.core.url}/#/activity?action=user.added&to=2026-11-08`);
      await events;
      await heading('Activity').waitFor();
      await eventually(async () => expect(await page.getByLabel('To day').inputValue()).to.equal('8 Nov 2026'));
      await browser.page.goto(`${browser.harness.core.url}/#/directory/campaign?parent=${browser.harness.tenants.siblingAccount.id}`);
      await row('Recalls').waitFor();
      expect(await row('Appointment reminders').count()).to.equal(0);
      await browser.page.getByRole('button', { name: 'In Green Clinic' }).waitFor();
    });

    it('is kept until the user signs in, and cleared after they sign out', async () => {
      await browser.page.goto(`${browser.harness.core.url}/#/calls/${browser.harness.tenants.campaign.id}?state=failed`);
      await browser.page.getByLabel('Email').fill(browser.harness.tenants.users.account.email);
      await browser.page.getByLabel('Password').fill(password);
      await button('Sign in').click();
      await heading('Calls').waitFor();
      await eventually(async () => expect(await browser.page.getByLabel('State').inputValue()).to.equal('failed'));
      await button('Sign out').click();
      await browser.page.getByLabel('Email').waitFor();
      expect(await path()).to.equal('/');
    });

    it('stays the same when Back closes a dialog', async () => {
      await open();
      await goHomeFromCalls();
      await button('Create API key').click();
      await browser.page.getByLabel('Name', { exact: true }).fill('Unfinished');
      await browser.page.goBack();
      await button('Discard').click();
      await browser.page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await path()).to.equal('/#/api-keys');
    });
  });

  it("counts a call in each chart on its day in the viewer's time zone", async () => {
    const { core, tenants, direct } = browser.harness;
    const { id, keyValue } = await createKeyOn(browser.harness, tenants.users.account, 'Charted');
    const placedAt = DateTime.fromISO(textAt(await placeCall(core.url, tenants.campaign.id, keyValue), 'placedAt'));
    const quarter = instant(Math.floor(placedAt.toMillis() / 900_000) * 900_000);
    // A core collects uses for a minute before it writes them.
    await direct.storage.database.write('api_key_usage').insert({ api_key_id: id, quarter_at: quarter, placed: 1, cancelled: 0 });
    // At any time, the date in one of these zones isn't that in UTC.
    const timezoneId = placedAt.toUTC().hour < 11 ? 'Pacific/Pago_Pago' : 'Pacific/Kiritimati';
    await browser.moveTo(timezoneId);
    const bars = browser.page.locator('g[data-tip]:not([data-tip*=": 0 "])');
    const expectOneDay = async (which: string) => {
      await bars.first().waitFor();
      const tips = await bars.evaluateAll((all) => all.map((each) => each.getAttribute('data-tip') ?? ''));
      expect(tips, which).to.have.length(1);
      expect(tips[0], which).to.match(new RegExp(`\\b${placedAt.setZone(timezoneId).day}\\b`));
    };
    await open();
    await browser.page.locator(`[data-id="${id}"], tr`, { hasText: 'Charted' }).first().click();
    await expectOneDay('of the key');
    await browser.context.clearCookies();
    for (const user of ['account', 'partner'] as const) {
      await open(core.url, user);
      await link('Calls').click();
      await browser.page.getByLabel('Outcomes in the last 30 days').waitFor();
      await expectOneDay(`of calls, for the ${user} user`);
    }
  });
});

describeBrowser('the address of a list with a search, a sort order, a page size and an open key', () => {
  const harness = openOnce(() => openPage());
  const { button, link, panel, row } = finders(() => harness.page);
  let view: string;
  before(async () => {
    const { id } = await createKeyOn(harness, harness.tenants.users.account, 'Front desk');
    view = `/#/api-keys/${id}?search=front&sort=name&size=50`;
    await harness.enter('account');
  });
  const details = () => panel().getByRole('heading', { name: 'Front desk' });
  /** Loads the console at this address, in a browser that remembers nothing. From a page of the console, only the address would change. */
  async function load(address: string): Promise<void> {
    await harness.page.evaluate('localStorage.clear()');
    await harness.page.goto('about:blank');
    await harness.page.goto(harness.core.url + address);
  }

  it('contains them all', async () => {
    const { page } = harness;
    await load('/#/api-keys');
    await page.getByLabel('Search by name').fill('front');
    await button('Name').click();
    await page.getByLabel('Rows per page').selectOption('50');
    await row('Front desk').click();
    await details().waitFor();
    expect(page.url()).to.equal(harness.core.url + view);
  });

  it('shows them again when it is loaded', async () => {
    const { page } = harness;
    await load(view);
    await details().waitFor();
    await eventually(async () => expect(await page.getByLabel('Search by name').inputValue()).to.equal('front'));
    await page.locator('[aria-sort="ascending"]', { hasText: 'Name' }).waitFor();
    expect(await page.getByLabel('Rows per page').inputValue()).to.equal('50');
  });

  it('opens in a new tab', async () => {
    await load(view);
    const opening = harness.page.context().waitForEvent('page');
    await link('Front desk').click({ modifiers: ['Control'] });
    const tab = await opening;
    await tab.getByRole('complementary').getByRole('heading', { name: 'Front desk' }).waitFor();
    await tab.close();
  });

  it('is left when the key is closed, and Back returns to it', async () => {
    await load(view);
    await button('Close details').click();
    await details().waitFor({ state: 'detached' });
    await harness.page.goBack();
    await details().waitFor();
    expect(harness.page.url()).to.equal(harness.core.url + view);
  });
});
