import type { Home } from './browser.ts';
import { asksForServer, clickUnderDialog, type EngineLocator, type EnginePage, fillInKey, signInAs, tryAgain } from './console-harness.ts';
import { type CoreHarness, openCore } from './core.ts';
import { faultyProxy, outage } from './proxies.ts';
import { addSampleData, createKeyOn, revokeKeyElsewhere } from './sample-data.ts';
import { password, type Tenants } from './tenants.ts';
import { until } from './until.ts';

/** A screen of the console in one state. */
type ScreenState<Shown extends EnginePage> = { name: string; page: Shown };

type ScreenStates<Shown extends EnginePage> = AsyncGenerator<ScreenState<Shown>>;

/** Returns what all parts of the walkthrough use. */
function createTour<Shown extends EnginePage>(page: Shown) {
  /** @param content what the screen shows in this state */
  const stop = async (name: string, content?: EngineLocator): Promise<ScreenState<Shown>> => {
    await content?.waitFor();
    return { name, page };
  };
  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  return {
    page,
    stop,
    link,
    button,
    async proceed(screen: string): Promise<void> {
      await link(screen).click();
      await page.getByRole('heading', { name: screen, exact: true }).waitFor();
    },
    /** Clicks a button that opens or submits a dialog, and cancels the dialog once it shows `content`. */
    async *dialog(name: string, opener: string, content: EngineLocator): ScreenStates<Shown> {
      await button(opener).click();
      yield stop(name, content);
      await button('Cancel').click();
    },
    /** Replaces the secret on the page with dots. */
    coverUp: () =>
      page.evaluate(`((field) => {
        field.value = field.value.replace(/(?<=^svc_sk_live_.*|^(?!svc_).*)./g, '•');
      })(document.querySelector('#secret'))`),
  };
}

type Tour<Shown extends EnginePage> = ReturnType<typeof createTour<Shown>>;

async function* createKey<Shown extends EnginePage>(tour: Tour<Shown>, harness: CoreHarness): ScreenStates<Shown> {
  const { page, stop, button, coverUp } = tour;
  await button('Create API key').click();
  await button('Create Key').click();
  yield stop('create-key-incomplete', page.getByText('Enter a name for the key.'));
  await page.getByLabel('Name', { exact: true }).fill('Practice software');
  await page.getByRole('radio', { name: 'Custom', exact: true }).check();
  await page.getByLabel('Last day').fill(`${new Date().getFullYear() + 1}-01-31`);
  yield stop('create-key', page.getByText(/^Works until/));
  await button('Use another time zone').click();
  yield stop('create-key-other-zone');
  await button('Create Key').click();
  await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
  await coverUp();
  yield stop('save-key');
  await page.keyboard.press('Escape');
  yield stop('save-key-question', page.getByText('Close without saving?'));
  await button('Close without saving').click();
  await page.getByRole('grid').waitFor();
  await revokeKeyElsewhere(harness, 'Practice software');
}

async function* openKeys<Shown extends EnginePage>(tour: Tour<Shown>): ScreenStates<Shown> {
  const { page, stop, button, dialog } = tour;
  yield stop('api-keys');
  await page.locator('time').first().focus();
  yield stop('api-keys-exact-time');
  await page.getByRole('row', { name: 'Reminder service' }).click();
  yield stop('api-key-details', page.getByRole('img', { name: /placed in the last 30 days/ }));
  yield* dialog('replace-key', 'Replace…', page.getByRole('dialog', { name: 'Replace API key' }));
  await button('Limit…').click();
  await page.getByLabel('Addresses').fill('192.0.2.0/24\n10.0.0.7/8');
  await page.getByLabel('Calls per day').fill('0');
  yield* dialog('limit-key', 'Save', page.getByText('Enter a whole number'));
  await button('Close details').click();
  await page.getByLabel('Select all on this page').check();
  await page.getByRole('button', { name: /^Revoke \d+ keys…$/ }).click();
  yield stop('revoke-several', page.getByRole('alertdialog', { name: /API keys\?/ }));
  await button('Cancel').click();
  await button('Clear').click();
}

async function* findAndRevokeKeys<Shown extends EnginePage>(
  tour: Tour<Shown>,
  harness: CoreHarness,
  ownKeyValue: string,
): ScreenStates<Shown> {
  const { page, stop, button } = tour;
  await page.getByLabel('Search by name').fill('zzz');
  yield stop('api-keys-no-match', page.getByText('No matching API keys'));
  await button('Show all keys').click();
  yield* whichKey(tour, harness, ownKeyValue);
  await button('Revoke Reminder service').click();
  yield stop('revoke', page.getByText('not yet dialed'));
  await page.getByLabel('Reason').selectOption('It leaked');
  yield stop('revoke-leaked', page.getByText('The key has no replacement yet.'));
  await button('Cancel').click();
  await button('Revoke Pilot project').click();
  // Not what the dialog took from the list, but what it has loaded.
  await page.getByText('No calls are waiting to be dialed.').waitFor();
  await revokeKeyElsewhere(harness, 'Pilot project');
  await button('Revoke').click();
  yield stop('already-gone', page.getByRole('alertdialog', { name: 'Already gone' }));
  await button('OK').click();
}

async function* whichKey<Shown extends EnginePage>(
  { page, stop, button }: Tour<Shown>,
  harness: CoreHarness,
  ownKeyValue: string,
): ScreenStates<Shown> {
  const { keyValue } = await createKeyOn(harness, harness.tenants.users.other, 'Of another partner');
  await button('Which key is this?').click();
  await page.getByLabel('Key value').fill('svc_sk_live_not-one');
  await button('Find key').click();
  yield stop('which-key', page.getByText('This isn’t a key value'));
  await page.getByLabel('Key value').fill(keyValue);
  await button('Find key').click();
  yield stop('which-key-none', page.getByText('None of the keys you can see'));
  await page.getByLabel('Key value').fill(ownKeyValue);
  await button('Find key').click();
  yield stop('which-key-found', page.locator('tr.highlighted'));
  await button('Close details').click();
}

/** @returns the one-time password of the user that it creates */
async function* visitUsers<Shown extends EnginePage>(tour: Tour<Shown>, tenants: Tenants): AsyncGenerator<ScreenState<Shown>, string> {
  const { page, stop, button, proceed, dialog, coverUp } = tour;
  await proceed('Users');
  yield stop('users', page.getByRole('grid'));
  await page.getByLabel('Search by name or email').fill('zzz');
  yield stop('users-no-match', page.getByText('No matching users'));
  await page.getByLabel('Search by name or email').fill('');
  await page.getByRole('row', { name: 'Tom Teammate' }).click();
  yield stop('user-details', page.getByRole('complementary'));
  yield* dialog('edit-user', 'Edit…', page.getByRole('dialog', { name: 'Edit user' }));
  await button('More').click();
  yield* dialog('disable-user', 'Disable…', page.getByRole('alertdialog', { name: 'Disable user?' }));
  await button('More').click();
  yield* dialog('reset-password', 'Reset password…', page.getByRole('alertdialog', { name: 'Reset password?' }));
  await button('Close details').click();
  yield* dialog('delete-user', 'Delete Tom Teammate', page.getByText('stop working'));
  await button('Create user').click();
  await page.getByLabel('Name', { exact: true }).fill('Nora New');
  await page.getByLabel('Email', { exact: true }).fill('nora@example.com');
  await page.getByLabel('Account', { exact: true }).selectOption(tenants.account.name);
  yield stop('create-user');
  await page.getByRole('dialog').getByRole('button', { name: 'Create user' }).click();
  await page.getByRole('alertdialog', { name: 'Share the password' }).waitFor();
  const oneTimePassword = await page.getByLabel('One-time password').inputValue();
  await coverUp();
  yield stop('one-time-password');
  await button("I've Saved It").click();
  yield stop('users-announcement', page.getByText('User Nora New was created.'));
  return oneTimePassword;
}

async function* visitDirectory<Shown extends EnginePage>({ page, stop, button, proceed, dialog }: Tour<Shown>): ScreenStates<Shown> {
  await proceed('Directory');
  yield stop('directory', page.getByRole('grid', { name: 'Accounts' }));
  await page.getByLabel('Search by name or ID').fill('zzz');
  yield stop('directory-no-match', page.getByText('No matching accounts'));
  await page.getByLabel('Search by name or ID').fill('');
  await page.getByRole('row', { name: 'Blue Clinic' }).click();
  yield stop('directory-details', page.getByRole('complementary'));
  yield* dialog('rename-account', 'Rename…', page.getByRole('dialog', { name: 'Rename account' }));
  await button('Show campaigns').click();
  yield stop('directory-campaigns', page.getByRole('grid', { name: 'Campaigns' }));
  yield* dialog('create-campaign', 'Create campaign', page.getByRole('dialog', { name: 'Create campaign' }));
}

async function* visitProtection<Shown extends EnginePage>({ page, stop, button, proceed, dialog }: Tour<Shown>): ScreenStates<Shown> {
  await proceed('Protection');
  await button('Add numbers').click();
  await page.getByLabel('Phone numbers').fill('12');
  await button('Add').click();
  yield stop('add-to-do-not-call', page.getByText('12: Must be'));
  await page.getByLabel('Phone numbers').fill('+49 30 12345678\n0049 30 12345678');
  await button('Add').click();
  yield stop('result-of-each-line', page.getByText('Same number as on line 1'));
  await button('Close').click();
  yield stop('do-not-call', page.getByRole('grid'));
  yield* dialog('opt-outs', 'Opt-outs…', page.getByText('If someone opts out'));
  yield* dialog('remove-number', 'Remove +493012345678', page.getByRole('alertdialog'));
  await button('Calling hours').click();
  await button('Set hours…').click();
  yield stop('set-calling-hours', page.getByRole('dialog'));
  await button('Save').click();
  yield stop('calling-hours', page.getByText('09:00–20:00').first());
  await button('Numbers').click();
  await page.getByLabel('Only these').check();
  yield stop('allowed-numbers');
  await button('Pace and limits').click();
  yield stop('discard-input', page.getByText('Discard your input?'));
  await button('Discard').click();
  yield stop('pace-and-limits', page.getByLabel('Calls to one number'));
  yield* dialog('stop-dialing', 'Stop dialing…', page.getByLabel('Reason (optional)'));
  await button('Check a number…').click();
  await page.getByLabel('Phone number').fill('+1 800 555 1234');
  yield* dialog('check-number', 'Check', page.getByText('Can’t be called now'));
}

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
    yield stop('sign-in-incomplete', page.getByText('Enter your password.'));
    if (namesServer) await page.getByLabel('Server address').fill('http://127.0.0.1:1');
    else network.faults.push({ path: '/console/session', method: 'POST', fault: { status: 502 } });
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByLabel('Password').fill('secret');
    await button('Sign in').click();
    yield stop('sign-in-unreachable', page.getByText('Can’t reach the server.'));

    await signInAs(behindNetwork, 'account');
    yield stop('api-keys-empty', page.getByText('No API keys yet'));
    await proceed('Calls');
    yield stop('calls-empty', page.getByText('No calls yet'));
    await proceed('API keys');
    yield* createKey(tour, harness);
    const { teammateKeyValue } = await addSampleData(harness);
    await button('Sign out').click();

    await signInAs(behindNetwork, 'partner');
    await page.getByRole('grid').waitFor();
    yield* openKeys(tour);
    if (namesServer) {
      await button('Switch server').click();
      yield stop('switch-server', page.getByText(/^Current · /));
      await button('Close').click();
    }
    await button('Go to…').click();
    await page.getByRole('dialog').getByRole('combobox').fill('re');
    yield stop('palette', page.getByRole('option', { name: /Reminder service/ }));
    await page.keyboard.press('Escape');
    yield* findAndRevokeKeys(tour, harness, teammateKeyValue);

    if (choose) {
      network.faults.push(...outage);
      await choose('refresh');
      yield stop('api-keys-stale', page.getByText('Showing the last data loaded.'));
      network.faults.length = 0;
      await tryAgain(page);
      await page.getByText('Showing the last data loaded.').waitFor({ state: 'detached' });
    }
    network.faults.push(...outage);
    await link('Activity').click();
    yield stop('activity-unreachable', page.getByRole('heading', { name: 'Can’t reach the server' }));
    network.faults.length = 0;
    await tryAgain(page);
    yield stop('activity', page.getByRole('grid'));
    await proceed('Calls');
    yield stop('all-calls', page.getByRole('grid', { name: 'Calls' }));
    await button('By campaign').click();
    yield stop('outcomes-by-campaign', page.getByRole('grid', { name: 'Campaigns' }));
    await page.getByRole('row', { name: 'Appointment reminders' }).click();
    yield stop('calls', page.getByRole('grid', { name: 'Calls' }));
    await page.getByRole('row', { name: 'Grace Hopper' }).click();
    yield stop('call-details', page.getByRole('complementary'));
    await page.keyboard.press('Escape');
    await page.getByLabel('Search').fill('zzz');
    yield stop('calls-no-match', page.getByText('No matching calls'));

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
    yield stop('change-password', page.getByText('Must be at least 8 characters.'));
    await button('Cancel').click();

    await proceed('API keys');
    await fillInKey(page, 'Typed with care');
    // Names the path and method, so that a list that reloads at this moment doesn't get this fault.
    network.faults.push({
      path: '/console/api-keys',
      method: 'POST',
      fault: { status: 200, headers: { 'callkey-contract': '2' }, body: '{}' },
    });
    await button('Create Key').click();
    yield stop('core-became-too-new', page.getByRole('alertdialog', { name: /too new|match the server’s version/ }));
    await button('Try again').click();
    // When these requests are done, every reload has finished as well.
    await page.evaluate(`(async () => { for (let times = 0; times < 2; times++) await callkey.request('listApiKeys', {}); })()`);
    await harness.direct.storage.database.write('sessions').delete();
    await clickUnderDialog(page, 'Create Key');
    yield stop('session-ended', page.getByRole('alertdialog', { name: 'Your session has ended' }));
    await button('Discard and sign out').click();
    // While the app holds a session, it asks before it connects to another server.
    await page.evaluate('callkey.signOut()');

    await signInAs({ ...harness, page }, 'staff');
    yield stop('no-tenancy', page.getByText('Choose an account or partner first'));
    await button('Choose').click();
    await page.getByRole('dialog').getByRole('combobox').fill('c');
    yield stop('tenancy-switcher', page.getByRole('option').first());
    await page.getByRole('dialog').getByRole('combobox').fill('zzz');
    yield stop('tenancy-no-match', page.getByText('matches “zzz”'));
    await page.getByRole('dialog').getByRole('combobox').fill('Blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    yield stop('api-keys-of-a-tenancy', page.getByRole('grid'));
    await button('Sign out').click();

    await page.getByLabel('Email').fill('nora@example.com');
    await page.getByLabel('Password').fill(oneTimePassword);
    await button('Sign in').click();
    yield stop('choose-password', page.getByRole('heading', { name: 'Choose a new password' }));
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
      yield stop(name, shown);
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
