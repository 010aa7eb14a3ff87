import { asksForServer, clickUnderDialog, signInAs, tryAgain } from './console-harness.ts';
import { openCore } from './core.ts';
import type { EnginePage } from './engine-page.ts';
import type { Home } from './homes.ts';
import { faultyProxy, outage } from './proxies.ts';
import { addSampleData } from './sample-data.ts';
import { visitDirectory, visitProtection, visitUsers } from './screen-walkthrough/administration.ts';
import { createKey, findAndRevokeKeys, openKeys } from './screen-walkthrough/api-keys.ts';
import { createTour, type ScreenStates } from './screen-walkthrough/tour.ts';
import { password } from './tenants.ts';
import { until } from './until.ts';

/**
 * Shows every screen of the console in every state, one after the other. Replaces each secret with dots before it yields the state.
 *
 * @param open receives the address of the core
 */
export async function* walkThrough<Shown extends EnginePage>(open: (url: string) => Promise<Home<Shown>>): ScreenStates<Shown> {
  const harness = await openCore();
  const network = await faultyProxy(harness.core.url);
  const { page, choose, close } = await open(network.url);
  const tour = createTour(page);
  const { stop, link, button, proceed, dialog } = tour;
  const behindNetwork = { ...harness, page, core: { ...harness.core, url: network.url } };

  try {
    await page.getByLabel('Email').waitFor();
    const namesServer = await asksForServer(page);
    yield stop('sign-in');
    await button('Sign in').click();
    await page.getByText('Enter your password.').waitFor();
    yield stop('sign-in-incomplete');
    if (namesServer) await page.getByLabel('Server address').fill('http://127.0.0.1:1');
    else network.faults.push({ status: 502 });
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByLabel('Password').fill('secret');
    await button('Sign in').click();
    await page.getByText('Can’t reach the server.').waitFor();
    yield stop('sign-in-unreachable');

    await signInAs(behindNetwork, 'account');
    await page.getByText('No API keys yet').waitFor();
    yield stop('api-keys-empty');
    await proceed('Calls');
    await page.getByText('No calls yet').waitFor();
    yield stop('calls-empty');
    await proceed('API keys');
    yield* createKey(tour, harness);
    const { teammateKeyValue } = await addSampleData(harness);
    await button('Sign out').click();

    await signInAs(behindNetwork, 'partner');
    await page.getByRole('grid').waitFor();
    yield* openKeys(tour);
    if (namesServer) {
      await button('Switch server').click();
      await page.getByText(/^Current · /).waitFor();
      yield stop('switch-server');
      await button('Close').click();
    }
    await button('Go to…').click();
    await page.getByRole('dialog').getByRole('combobox').fill('re');
    await page.getByRole('option', { name: /Reminder service/ }).waitFor();
    yield stop('palette');
    await page.keyboard.press('Escape');
    yield* findAndRevokeKeys(tour, harness, teammateKeyValue);

    if (choose) {
      network.faults.push(...outage);
      await choose('refresh');
      await page.getByText('Showing the last data loaded.').waitFor();
      yield stop('api-keys-stale');
      network.faults.length = 0;
      await tryAgain(page);
      await page.getByText('Showing the last data loaded.').waitFor({ state: 'detached' });
    }
    network.faults.push(...outage);
    await link('Activity').click();
    await page.getByRole('heading', { name: 'Can’t reach the server' }).waitFor();
    yield stop('activity-unreachable');
    network.faults.length = 0;
    await tryAgain(page);
    await page.getByRole('grid').waitFor();
    yield stop('activity');
    await proceed('Calls');
    await page.getByRole('grid', { name: 'Calls' }).waitFor();
    yield stop('all-calls');
    await button('By campaign').click();
    await page.getByRole('grid', { name: 'Campaigns' }).waitFor();
    yield stop('outcomes-by-campaign');
    await page.getByRole('row', { name: 'Appointment reminders' }).click();
    await page.getByRole('grid', { name: 'Calls' }).waitFor();
    yield stop('calls');
    await page.getByRole('row', { name: 'Grace Hopper' }).click();
    await page.getByRole('complementary').waitFor();
    yield stop('call-details');
    await page.keyboard.press('Escape');
    await page.getByLabel('Search').fill('zzz');
    await page.getByText('No matching calls').waitFor();
    yield stop('calls-no-match');

    const oneTimePassword = yield* visitUsers(tour, harness.tenants);
    yield* visitDirectory(tour);
    yield* visitProtection(tour);
    await button('Your account').click();
    yield stop('your-account');
    await button('Set up second factor…').click();
    await page.getByLabel('Current password').fill(password);
    yield* dialog('set-up-second-factor', 'Continue', page.getByRole('img', { name: 'QR code' }));
    await button('Change password…').click();
    await page.getByLabel('New password').fill('short');
    await page.getByLabel('Current password').fill(password);
    await button('Change password').last().click();
    await page.getByText('Must be at least 8 characters.').waitFor();
    yield stop('change-password');
    await button('Cancel').click();

    await proceed('API keys');
    await button('Create API key').click();
    await page.getByLabel('Name', { exact: true }).fill('Typed with care');
    await page.getByRole('radio', { name: '1 Year', exact: true }).check();
    // Names the path and method, so that a list that reloads at this moment doesn't get this fault.
    network.faults.push({
      path: '/console/api-keys',
      method: 'POST',
      fault: { status: 200, headers: { 'callkey-contract': '2' }, body: '{}' },
    });
    await button('Create Key').click();
    await page.getByRole('alertdialog', { name: /too new|match the server’s version/ }).waitFor();
    yield stop('core-became-too-new');
    await button('Try again').click();
    // When these requests are done, every reload has finished as well.
    await page.evaluate(`(async () => { for (let times = 0; times < 2; times++) await callkey.request('listApiKeys', {}); })()`);
    await harness.direct.storage.database.write('sessions').delete();
    await clickUnderDialog(page, 'Create Key');
    await page.getByRole('alertdialog', { name: 'Your session has ended' }).waitFor();
    yield stop('session-ended');
    await button('Discard and sign out').click();
    // While the app holds a session, it asks before it connects to another server.
    await page.evaluate('callkey.signOut()');

    await signInAs({ ...harness, page }, 'staff');
    await page.getByText('Choose an account or partner first').waitFor();
    yield stop('no-tenancy');
    await button('Choose').click();
    await page.getByRole('dialog').getByRole('combobox').fill('c');
    await page.getByRole('option').first().waitFor();
    yield stop('tenancy-switcher');
    await page.getByRole('dialog').getByRole('combobox').fill('zzz');
    await page.getByText('matches “zzz”').waitFor();
    yield stop('tenancy-no-match');
    await page.getByRole('dialog').getByRole('combobox').fill('Blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByRole('grid').waitFor();
    yield stop('api-keys-of-a-tenancy');
    await button('Sign out').click();

    await page.getByLabel('Email').fill('nora@example.com');
    await page.getByLabel('Password').fill(oneTimePassword);
    await button('Sign in').click();
    await page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
    yield stop('choose-password');
    await button('Sign out').click();
    // Wait for this request, because in a browser it has the same path as the next fault.
    if (!namesServer) await until(() => network.seen.findLast(({ path }) => path === '/console/session')?.method === 'DELETE');

    for (const [name, status, generation, shown] of [
      ['core-too-old', 201, '0', page.getByRole('heading', { name: /too old|match the server’s version/ })],
      ['core-too-new', 201, '2', page.getByRole('heading', { name: /too new|match the server’s version/ })],
      ['no-core', 404, '1', page.getByText('There’s no Callkey server at this address')],
    ] as const) {
      const fault = { status, headers: { 'callkey-contract': generation }, body: '{}' };
      network.faults.push({ path: '/console/session', fault });
      if (namesServer) await page.getByLabel('Server address').fill(network.url);
      await page.getByLabel('Email').fill('nora@example.com');
      await page.getByLabel('Password').fill(password);
      await button('Sign in').click();
      await shown.waitFor();
      yield stop(name);
      if (name === 'no-core') continue;
      await button(namesServer ? 'Use another server' : 'Try again').click();
      // Wait until the form is shown, so that the requests that load it don't get the next fault.
      await page.getByLabel('Email').waitFor();
    }
  } finally {
    await close();
    await network.close();
    await harness.close();
  }
}
