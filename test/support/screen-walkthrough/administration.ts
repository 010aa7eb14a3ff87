import type { EnginePage } from '../engine-page.ts';
import type { Tenants } from '../tenants.ts';
import type { ScreenState, ScreenStates, Tour } from './tour.ts';

/** @returns the one-time password of the user that it creates */
export async function* visitUsers<Shown extends EnginePage>(
  tour: Tour<Shown>,
  tenants: Tenants,
): AsyncGenerator<ScreenState<Shown>, string> {
  const { page, stop, button, proceed, dialog, coverUp } = tour;
  await proceed('Users');
  await page.getByRole('grid').waitFor();
  yield stop('users');
  await page.getByLabel('Search by name or email').fill('zzz');
  await page.getByText('No matching users').waitFor();
  yield stop('users-no-match');
  await page.getByLabel('Search by name or email').fill('');
  await page.getByRole('row', { name: 'Tom Teammate' }).click();
  await page.getByRole('complementary').waitFor();
  yield stop('user-details');
  yield* dialog('edit-user', 'Edit…', page.getByRole('dialog', { name: 'Edit user' }));
  yield* dialog('disable-user', 'Disable…', page.getByRole('alertdialog', { name: 'Disable user?' }));
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
  await page.getByText('User Nora New was created.').waitFor();
  yield stop('users-announcement');
  return oneTimePassword;
}

export async function* visitDirectory<Shown extends EnginePage>({ page, stop, button, proceed, dialog }: Tour<Shown>): ScreenStates<Shown> {
  await proceed('Directory');
  await page.getByRole('grid', { name: 'Accounts' }).waitFor();
  yield stop('directory');
  await page.getByLabel('Search by name or ID').fill('zzz');
  await page.getByText('No matching accounts').waitFor();
  yield stop('directory-no-match');
  await page.getByLabel('Search by name or ID').fill('');
  await page.getByRole('row', { name: 'Blue Clinic' }).click();
  await page.getByRole('complementary').waitFor();
  yield stop('directory-details');
  yield* dialog('rename-account', 'Rename…', page.getByRole('dialog', { name: 'Rename account' }));
  await button('Show campaigns').click();
  await page.getByRole('grid', { name: 'Campaigns' }).waitFor();
  yield stop('directory-campaigns');
  yield* dialog('create-campaign', 'Create campaign', page.getByRole('dialog', { name: 'Create campaign' }));
}

export async function* visitProtection<Shown extends EnginePage>({
  page,
  stop,
  button,
  proceed,
  dialog,
}: Tour<Shown>): ScreenStates<Shown> {
  await proceed('Protection');
  await button('Add numbers').click();
  await page.getByLabel('Phone numbers').fill('12');
  await button('Add').click();
  await page.getByText('12: Must be').waitFor();
  yield stop('add-to-do-not-call');
  await page.getByLabel('Phone numbers').fill('+49 30 12345678');
  await button('Add').click();
  await page.getByRole('grid').waitFor();
  yield stop('do-not-call');
  yield* dialog('opt-outs', 'Opt-outs…', page.getByText('If someone opts out'));
  yield* dialog('remove-number', 'Remove +493012345678', page.getByRole('alertdialog'));
  await button('Calling hours').click();
  await button('Set hours…').click();
  await page.getByRole('dialog').waitFor();
  yield stop('set-calling-hours');
  await button('Save').click();
  await page.getByText('09:00–20:00').first().waitFor();
  yield stop('calling-hours');
  await button('Numbers').click();
  await page.getByLabel('Only these').check();
  yield stop('allowed-numbers');
  await button('Check a number…').click();
  await page.getByLabel('Phone number').fill('+1 800 555 1234');
  yield* dialog('check-number', 'Check', page.getByText('Can’t be called now'));
}
