import type { Page } from 'playwright-core';
import { type Desk, openDesk, signInAs } from './console.ts';
import { createKeyOn, furnish } from './furniture.ts';
import { networkTo } from './network.ts';
import { password } from './world.ts';

/** A screen or a state of the console that a tour has come to. */
export type Stop = { name: string; page: Page };

/**
 * Goes through every screen and state of the console, one after the other: for whoever wants to look at each. A secret that shows is
 * covered up first.
 */
export async function* tour(): AsyncGenerator<Stop> {
  const desk = await openDesk({ env: { TZ: 'Europe/Berlin' } });
  const network = await networkTo(desk.core.url);
  const { page } = desk;
  const stop = (name: string): Stop => ({ name, page });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const behindNetwork = { ...desk, core: { ...desk.core, url: network.url } };
  const proceed = async (screen: string) => {
    await button(screen).click();
    await page.getByRole('heading', { name: screen, exact: true }).waitFor();
  };
  const fail = async (command = 'refresh') =>
    desk.desktop.app.evaluate(({ BrowserWindow }, name) => BrowserWindow.getAllWindows()[0]?.webContents.send('command', name), command);

  try {
    await page.getByLabel('Server address').waitFor();
    yield stop('sign-in');
    await button('Sign in').click();
    await page.getByText('Give your password.').waitFor();
    yield stop('sign-in-incomplete');
    await page.getByLabel('Server address').fill('http://127.0.0.1:1');
    await page.getByLabel('E-mail').fill('ada@example.com');
    await page.getByLabel('Password').fill('secret');
    await button('Sign in').click();
    await page.getByText('The core cannot be reached.').waitFor();
    yield stop('sign-in-unreachable');

    await signInAs(behindNetwork, 'account');
    await page.getByText('No API keys yet').waitFor();
    yield stop('api-keys-empty');
    await proceed('Calls');
    await page.getByText('No calls yet').waitFor();
    yield stop('calls-empty');
    await proceed('API keys');
    yield* creatingAKey(desk);
    await furnish(desk);
    await button('Sign out').click();

    await signInAs(behindNetwork, 'partner');
    await page.getByRole('table').waitFor();
    yield stop('api-keys');
    await page.locator('time').first().focus();
    yield stop('api-keys-exact-time');
    await page.getByLabel('Search by name').fill('zzz');
    await page.getByText('No API key matches').waitFor();
    yield stop('api-keys-no-match');
    await button('Show all keys').click();
    yield* whichKey(desk);
    await button('Revoke Reminder service').click();
    await page.getByText('not yet dialed').waitFor();
    yield stop('revoke');
    await button('Cancel').click();

    network.faults.push({ status: 502 }, { status: 502 });
    await fail();
    await page.getByText('This is what was there before.').waitFor();
    yield stop('api-keys-stale');
    network.faults.length = 0;
    await button('Try again').click();
    await page.getByText('This is what was there before.').waitFor({ state: 'detached' });
    network.faults.push({ status: 502 }, { status: 502 });
    await button('Activity').click();
    await page.getByText('The core is out of reach').waitFor();
    yield stop('activity-unreachable');
    network.faults.length = 0;
    await button('Try again').click();
    await page.getByRole('table').waitFor();
    yield stop('activity');
    await proceed('Calls');
    await page.getByRole('table').waitFor();
    yield stop('calls');
    await page.getByLabel('Search').fill('zzz');
    await page.getByText('No call matches').waitFor();
    yield stop('calls-no-match');

    yield* people(desk);
    await fail('change-password');
    await page.getByLabel('New password').fill('short');
    await page.getByLabel('Current password').fill(password);
    await button('Change password').last().click();
    await page.getByText('Give at least 8 characters.').waitFor();
    yield stop('change-password');
    await button('Cancel').click();

    await desk.beside.storage.database.write('sessions').delete();
    await button('Activity').click();
    await page.getByText('Your session has ended').waitFor();
    yield stop('session-ended');
    await button('Leave This Behind').click();

    await signInAs(desk, 'staff');
    await page.getByText('Choose an account or partner first').waitFor();
    yield stop('no-tenancy');
    await button('Choose').click();
    await page.getByRole('combobox').fill('c');
    await page.getByRole('option').first().waitFor();
    yield stop('tenancy-switcher');
    await page.getByRole('combobox').fill('zzz');
    await page.getByText('matches “zzz”').waitFor();
    yield stop('tenancy-no-match');
    await page.getByRole('combobox').fill('Blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByRole('table').waitFor();
    yield stop('api-keys-of-a-tenancy');
    await button('Sign out').click();

    for (const [name, generation] of [
      ['core-too-old', '0'],
      ['core-too-new', '2'],
    ] as const) {
      network.faults.push({ status: 201, headers: { 'callkey-contract': generation }, body: '{}' });
      await page.getByLabel('Server address').fill(network.url);
      await page.getByLabel('Password').fill(password);
      await button('Sign in').click();
      await page.getByText(/too (old|new) for this console/).waitFor();
      yield stop(name);
      await button('Use another server').click();
    }
  } finally {
    await desk.close();
    await network.close();
  }

  async function* creatingAKey({ beside }: Desk): AsyncGenerator<Stop> {
    await button('Create API Key').click();
    await button('Create Key').click();
    await page.getByText('Give the key a name.').waitFor();
    yield stop('create-key-incomplete');
    await page.getByLabel('Name', { exact: true }).fill('Practice software');
    await page.getByLabel('Expiration').selectOption('Custom');
    await page.getByLabel('Last day').fill('2027-01-31');
    await page.getByText(/^Works until/).waitFor();
    yield stop('create-key');
    await button('Use another time zone').click();
    yield stop('create-key-other-zone');
    await button('Create Key').click();
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    await coverUp('Key value');
    yield stop('save-key');
    await page.keyboard.press('Escape');
    await page.getByText('Close without saving it?').waitFor();
    yield stop('save-key-question');
    await button('Close Without Saving').click();
    await page.getByRole('table').waitFor();
    await beside.storage.database.write('api_keys').delete();
  }

  async function* whichKey({ world }: Desk): AsyncGenerator<Stop> {
    const { keyValue } = await createKeyOn(desk, world.users.other, 'Of another partner');
    await button('Which key is this?').click();
    await page.getByLabel('Key value').fill('svc_sk_live_not-one');
    await button('Find Key').click();
    await page.getByText('This is no key value').waitFor();
    yield stop('which-key');
    await page.getByLabel('Key value').fill(keyValue);
    await button('Find Key').click();
    await page.getByText('This is no key that you can see').waitFor();
    yield stop('which-key-none');
    await button('Close').click();
  }

  async function* people({ world }: Desk): AsyncGenerator<Stop> {
    await proceed('People');
    await page.getByRole('table').waitFor();
    yield stop('people');
    await button('Delete Tom Teammate').click();
    await page.getByText('stop working').waitFor();
    yield stop('delete-person');
    await button('Cancel').click();
    await button('Add Person').click();
    await page.getByLabel('Name', { exact: true }).fill('Nora New');
    await page.getByLabel('E-mail', { exact: true }).fill('nora@example.com');
    await page.getByLabel('Account', { exact: true }).selectOption(world.account.name);
    yield stop('add-person');
    await page.getByRole('dialog').getByRole('button', { name: 'Add Person' }).click();
    await page.getByRole('alertdialog', { name: 'Hand over the password' }).waitFor();
    await coverUp('One-time password');
    yield stop('one-time-password');
    await button("I've Saved It").click();
    await page.getByText('Nora New is added.').waitFor();
    yield stop('people-announcement');
  }

  function coverUp(label: string): Promise<void> {
    return page.getByLabel(label).evaluate((field) => {
      if ('value' in field && typeof field.value === 'string') field.value = field.value.replace(/(?<=^svc_sk_live_.*|^(?!svc_).*)./g, '•');
    });
  }
}
