import type { CoreHarness } from '../core.ts';
import type { EnginePage } from '../engine-page.ts';
import { createKeyOn, revokeKeyElsewhere } from '../sample-data.ts';
import type { ScreenStates, Tour } from './tour.ts';

export async function* createKey<Shown extends EnginePage>(tour: Tour<Shown>, harness: CoreHarness): ScreenStates<Shown> {
  const { page, stop, button, coverUp } = tour;
  await button('Create API key').click();
  await button('Create Key').click();
  await page.getByText('Enter a name for the key.').waitFor();
  yield stop('create-key-incomplete');
  await page.getByLabel('Name', { exact: true }).fill('Practice software');
  await page.getByRole('radio', { name: 'Custom', exact: true }).check();
  await page.getByLabel('Last day').fill(`${new Date().getFullYear() + 1}-01-31`);
  await page.getByText(/^Works until/).waitFor();
  yield stop('create-key');
  await button('Use another time zone').click();
  yield stop('create-key-other-zone');
  await button('Create Key').click();
  await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
  await coverUp();
  yield stop('save-key');
  await page.keyboard.press('Escape');
  await page.getByText('Close without saving?').waitFor();
  yield stop('save-key-question');
  await button('Close without saving').click();
  await page.getByRole('grid').waitFor();
  await revokeKeyElsewhere(harness, 'Practice software');
}

export async function* openKeys<Shown extends EnginePage>(tour: Tour<Shown>): ScreenStates<Shown> {
  const { page, stop, button, dialog } = tour;
  yield stop('api-keys');
  await page.locator('time').first().focus();
  yield stop('api-keys-exact-time');
  await page.getByRole('row', { name: 'Reminder service' }).click();
  await page.getByRole('img', { name: /placed in the last 30 days/ }).waitFor();
  yield stop('api-key-details');
  yield* dialog('replace-key', 'Replace…', page.getByRole('dialog', { name: 'Replace API key' }));
  await button('Limit…').click();
  await page.getByLabel('Addresses').fill('192.0.2.0/24\n10.0.0.7/8');
  await page.getByLabel('Calls per day').fill('0');
  yield* dialog('limit-key', 'Save', page.getByText('Enter a whole number'));
  await button('Close details').click();
  await page.getByLabel('Select all on this page').check();
  await page.getByRole('button', { name: /^Revoke \d+ keys…$/ }).click();
  await page.getByRole('alertdialog', { name: /API keys\?/ }).waitFor();
  yield stop('revoke-several');
  await button('Cancel').click();
  await button('Clear').click();
}

export async function* findAndRevokeKeys<Shown extends EnginePage>(
  tour: Tour<Shown>,
  harness: CoreHarness,
  ownKeyValue: string,
): ScreenStates<Shown> {
  const { page, stop, button } = tour;
  await page.getByLabel('Search by name').fill('zzz');
  await page.getByText('No matching API keys').waitFor();
  yield stop('api-keys-no-match');
  await button('Show all keys').click();
  yield* whichKey(tour, harness, ownKeyValue);
  await button('Revoke Reminder service').click();
  await page.getByText('not yet dialed').waitFor();
  yield stop('revoke');
  await page.getByLabel('Reason').selectOption('It leaked');
  await page.getByText('The key has no replacement yet.').waitFor();
  yield stop('revoke-leaked');
  await button('Cancel').click();
  await button('Revoke Pilot project').click();
  await page.getByRole('alertdialog').getByText('Never', { exact: true }).first().waitFor();
  await revokeKeyElsewhere(harness, 'Pilot project');
  await button('Revoke').click();
  await page.getByRole('alertdialog', { name: 'Already gone' }).waitFor();
  yield stop('already-gone');
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
  await page.getByText('This isn’t a key value').waitFor();
  yield stop('which-key');
  await page.getByLabel('Key value').fill(keyValue);
  await button('Find key').click();
  await page.getByText('None of the keys you can see').waitFor();
  yield stop('which-key-none');
  await page.getByLabel('Key value').fill(ownKeyValue);
  await button('Find key').click();
  await page.locator('tr.highlighted').waitFor();
  yield stop('which-key-found');
  await button('Close details').click();
}
