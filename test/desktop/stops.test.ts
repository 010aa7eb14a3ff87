import { expect } from 'chai';
import type { Route } from 'playwright-core';
import { operator } from '../../core/domain/audit/audit.ts';
import { resumeDialing, stopDialing } from '../../core/domain/calls/stops.ts';
import { instant } from '../../core/domain/instant.ts';
import { showPace } from '../../core/domain/protection/rules.ts';
import { describeBrowser, pageForEach, settle } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';

describeBrowser('the console, for stopping dialing', () => {
  const harness = pageForEach();

  const { link, button } = finders(() => harness.page);
  const text = (pattern: RegExp | string) => harness.page.getByText(pattern).first().waitFor();
  const banner = () => harness.page.locator('.stops .banner');
  const listStops = () => harness.direct.storage.database.read('dialing_stops');
  async function placeCalls(count: number): Promise<void> {
    const { core, tenants } = harness;
    const { keyValue } = await createKeyOn(harness, tenants.users.account, 'Practice software');
    for (let n = 0; n < count; n += 1)
      await placeCall(core.url, tenants.campaign.id, keyValue, {
        requestId: `order-${n}`,
        contact: { phone: '+4930555001', name: `Ada ${n}` },
      });
  }
  async function confirmStop(): Promise<void> {
    await harness.page.getByRole('dialog').getByRole('button', { name: 'Stop dialing' }).click();
    await harness.page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  }

  it('stops the chosen campaign from Calls, asks before it cancels its calls, and shows the stop on every screen', async () => {
    const { page, tenants } = harness;
    await placeCalls(2);
    await harness.enter('account', 'calls');
    await button('Stop dialing…').click();
    await page.getByLabel('Reason (optional)').fill('Wrong recording');
    await page.getByRole('dialog').getByRole('button', { name: 'Stop dialing' }).click();
    await page.getByRole('heading', { name: 'Dialing is stopped' }).waitFor();
    await page.getByRole('dialog').getByText('2 calls').waitFor();
    expect((await listStops()).map(({ scope_id, reason }) => ({ scope_id, reason }))).to.deep.equal([
      { scope_id: tenants.campaign.id, reason: 'Wrong recording' },
    ]);
    await button('Cancel 2 queued calls…').click();
    const question = page.getByRole('alertdialog', { name: 'Cancel 2 queued calls?' });
    await question.getByRole('button', { name: 'Go back' }).click();
    expect(await harness.direct.storage.database.read('calls').where({ state: 'queued' })).to.have.length(2);
    await button('Cancel 2 queued calls…').click();
    await question.getByRole('button', { name: 'Cancel 2 calls' }).click();
    await page.getByRole('dialog').getByText('0 calls').first().waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await banner()
      .getByText(/Dialing is stopped for the campaign .* by you.*: Wrong recording/)
      .waitFor();
    await link('API keys').click();
    await banner().getByText('Wrong recording').waitFor();
    await link('Activity').click();
    await page.getByRole('row', { name: /^Stopped dialing for .*Wrong recording/ }).waitFor();
  });

  it('stops the campaign that staff choose in the dialog while Calls shows all campaigns, and tells its stop from that of another if the connection is lost', async () => {
    const { page, tenants, direct } = harness;
    await stopDialing(direct.ports, operator, { scope: 'campaign', id: tenants.siblingCampaign.id });
    await harness.enter('staff');
    await button('None selected').click();
    await page.getByRole('option', { name: `${tenants.partner.name} Partner` }).click();
    await link('Calls').click();
    await button('Stop dialing…').click();
    await button(`Partner ${tenants.partner.name}`).click();
    await page.getByRole('listbox').getByText(tenants.campaign.name).click();
    const loseStops = (route: Route) => (route.request().method() === 'POST' ? route.abort() : route.fallback());
    await page.route('**/console/stops', loseStops);
    await page.getByRole('dialog').getByRole('button', { name: 'Stop dialing' }).click();
    await text('The connection was lost, and the server hasn’t done this. Try again.');
    await page.unroute('**/console/stops', loseStops);
    await confirmStop();
    expect((await listStops()).map((stop) => stop.scope_id)).to.have.members([tenants.siblingCampaign.id, tenants.campaign.id]);
  });

  it('says in the details of a waiting call that dialing is stopped, unless it is for another account', async () => {
    const { page, tenants, direct } = harness;
    await placeCalls(1);
    const stop = (id: string) => stopDialing(direct.ports, operator, { scope: 'account', id });
    await stop(tenants.siblingAccount.id);
    await harness.enter('partner', 'calls');
    await page.getByRole('row', { name: 'Ada 0' }).click();
    const fact = page.getByRole('complementary').locator('dt', { hasText: 'Next attempt' }).locator('xpath=following-sibling::dd[1]');
    await fact.getByText('Not until a provider is connected').waitFor();
    await stop(tenants.account.id);
    await page.reload();
    await fact.getByText('Not while dialing is stopped').waitFor();
    // A claim holds the calls of a stopped campaign, and then the core doesn't give a time.
    const { write } = direct.storage.database;
    await write('calls')
      .where({ name: 'Ada 0' })
      .update({ held_for: 'stop', held_until: instant(Date.now() + 3_600_000) });
    await page.reload();
    await fact.getByText('Not while dialing is stopped').waitFor();
    await write('calls').where({ name: 'Ada 0' }).update({ held_for: 'pace' });
    await page.reload();
    await fact.getByText('Not while dialing is stopped').waitFor();
  });

  it('says how many calls would leave before it resumes', async () => {
    await placeCalls(1);
    await stopDialing(harness.direct.ports, operator, { scope: 'server' });
    await harness.enter('partner', 'protection');
    await button('Stop dialing…').click();
    await confirmStop();
    await button('Resume…').click();
    await text('1 call is waiting. It leaves once it’s due, as soon as other stops, paces, calling hours and limits allow.');
    await button('Resume').click();
    await text('Dialing is resumed for the partner Northwind Voice.');
    await banner().getByText('the partner Northwind Voice').waitFor({ state: 'detached' });
    expect((await listStops()).map(({ scope }) => scope)).to.deep.equal(['server']);
  });

  it('lets staff without an account or partner stop the whole server, and counts its calls without stopping again', async () => {
    const { page, direct } = harness;
    await placeCalls(1);
    await harness.enter('staff', 'calls');
    await button('Stop dialing…').click();
    await page.getByRole('dialog').getByText('The whole server').waitFor();
    await confirmStop();
    const events = () => direct.storage.database.read('audit_events').where({ action: 'dialing.stopped' });
    expect([(await listStops()).map(({ scope }) => scope), await events()].map(({ length }) => length)).to.deep.equal([1, 1]);
    await button('Resume…').waitFor();
    // Someone else resumes and stops it between the click and the preview, which must not stop it a third time.
    await direct.storage.database.write('dialing_stops').delete();
    await button('Resume…').click();
    await text('Someone else has already resumed it.');
    expect([await listStops(), await events()].map(({ length }) => length)).to.deep.equal([0, 1]);
  });

  it('tells whom it stops about a stop of the partner, which only others can resume', async () => {
    const { direct, tenants } = harness;
    await stopDialing(direct.ports, operator, { scope: 'partner', id: tenants.partner.id, reason: 'The provider asked us to' });
    await harness.enter('account');
    await banner()
      .getByText(/the partner Northwind Voice by the operator.*: The provider asked us to/)
      .waitFor();
    expect(await button('Resume…').count()).to.equal(0);
    const [stop] = await listStops();
    await resumeDialing(direct.ports, operator, stop?.id ?? '');
    await link('Calls').click();
    await harness.page.reload();
    await button('Stop dialing…').waitFor();
    await settle(harness.page);
    expect(await banner().count()).to.equal(0);
  });

  it('lists many stops in a dialog, and offers to resume none that only service staff can resume', async () => {
    const { page, direct, tenants } = harness;
    for (const scope of ['partner', 'account', 'campaign'] as const)
      await stopDialing(direct.ports, operator, { scope, id: tenants[scope].id });
    await direct.storage.database
      .write('dialing_stops')
      .where({ scope: 'account' })
      .update({ by_id: 'x', by_name: 'Sam Staff', by_type: 'staff' });
    await harness.enter('partner');
    await banner().getByText('Dialing is stopped in 3 places.').waitFor();
    await button('Show stops…').click();
    await page
      .getByRole('dialog')
      .getByText(/for the account Blue Clinic by Sam Staff/)
      .waitFor();
    expect(await button('Resume…').count()).to.equal(0);
  });

  it('saves a pace and contact limits, and shows what a campaign inherits', async () => {
    const { page, direct, tenants } = harness;
    await harness.enter('partner', 'protection');
    await button('Pace and limits').click();
    await page.getByLabel('Calls to one number').fill('3');
    await button('Save limits').click();
    await text('Must be a whole number from 1 to 30.');
    await page.getByLabel('In this many days').fill('7');
    await page.getByLabel('Minutes between two calls').fill('60');
    await button('Save limits').click();
    await text('Contact limits were saved.');
    await button('Partner Northwind Voice').click();
    await page.getByRole('option', { name: /Blue Clinic Account/ }).click();
    await text('Inherited: At most 3 calls to one number in 7 days, at least 60 minutes apart (from the partner Northwind Voice).');
    await page.getByLabel('Calls per second').fill('many');
    await button('Save pace').click();
    await text('Must be a number from 0.1 to 1,000, or empty.');
    await page.getByLabel('Calls per second').fill('0,5');
    await page.getByLabel('Live calls').fill('10,000');
    await button('Save pace').click();
    await text('The pace was saved.');
    expect(await showPace(direct.ports, operator.viewer, { scope: 'account', id: tenants.account.id })).to.include({
      perSecond: 0.5,
      liveCalls: 10_000,
    });
  });
});
