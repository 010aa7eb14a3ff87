import type { Page } from 'playwright-core';
import type { Clock } from '../../core/domain/ports.ts';
import { type RunningCore, startCoreHere } from './core.ts';
import { freshDatabase } from './databases.ts';
import { type LaunchOptions, launchConsole, type RunningConsole } from './electron.ts';
import { createTenants, type DirectAccess, openDirect, password, type Tenants } from './tenants.ts';

/** A core with two partners and their users, and a console with nobody signed in. */
export type ConsoleHarness = {
  core: RunningCore;
  direct: DirectAccess;
  tenants: Tenants;
  desktop: RunningConsole;
  page: Page;
  close(): Promise<void>;
};

export async function openConsole({ clock, ...launch }: { clock?: Clock } & LaunchOptions = {}): Promise<ConsoleHarness> {
  const databaseUrl = await freshDatabase('sqlite');
  const core = await startCoreHere(databaseUrl, clock ? { clock } : {});
  const direct = await openDirect(databaseUrl, clock);
  const tenants = await createTenants(direct.ports);
  const desktop = await launchConsole(launch);
  return {
    core,
    direct,
    tenants,
    desktop,
    page: desktop.page,
    async close() {
      await desktop.close();
      await direct.close();
      await core.close();
    },
  };
}

export type UserName = keyof Tenants['users'];

/** Signs in through the form and waits for the home screen. */
export async function signInAs({ core, tenants, page }: Pick<ConsoleHarness, 'core' | 'tenants' | 'page'>, user: UserName): Promise<void> {
  await page.getByLabel('Server address').fill(core.url);
  await page.getByLabel('E-mail').fill(tenants.users[user].email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
}
