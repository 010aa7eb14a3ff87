import type { Page } from 'playwright-core';

/**
 * Makes a partner user's page show one-time passwords in both possible ways: by creating a user named Canary, and by resetting that user's
 * password. Closes each dialog, then visits several screens.
 *
 * @returns the passwords
 */
export async function showOneTimePasswords(page: Page, account: string): Promise<string[]> {
  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const shown = async () => {
    const password = await page.getByLabel('One-time password').inputValue();
    await button("I've Saved It").click();
    await page.getByLabel('One-time password').waitFor({ state: 'detached' });
    return password;
  };
  await link('Users').click();
  await button('Create user').click();
  await page.getByLabel('Name', { exact: true }).fill('Canary');
  await page.getByLabel('Email', { exact: true }).fill('canary@example.com');
  await page.getByLabel('Account', { exact: true }).selectOption(account);
  await page.getByRole('dialog').getByRole('button', { name: 'Create user' }).click();
  const first = await shown();
  await page.getByRole('row', { name: 'canary@example.com' }).click();
  await button('Reset password…').click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Reset password' }).click();
  const second = await shown();
  for (const screen of ['Activity', 'API keys', 'Users']) await link(screen).click();
  await page.getByRole('row', { name: 'canary@example.com' }).waitFor();
  return [first, second];
}
