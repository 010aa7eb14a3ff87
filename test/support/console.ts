import type { Page } from 'playwright-core';
import type { Clock } from '../../core/domain/ports.ts';
import { type RunningCore, startCoreHere } from './core.ts';
import { freshDatabase } from './databases.ts';
import { type LaunchOptions, launchConsole, type RunningConsole } from './electron.ts';
import { type Beside, createWorld, openBeside, password, type World } from './world.ts';

/** A core with two partners and their people, and a console that is not signed in to it yet. */
export type Desk = { core: RunningCore; beside: Beside; world: World; desktop: RunningConsole; page: Page; close(): Promise<void> };

export async function openDesk({ clock, ...launch }: { clock?: Clock } & LaunchOptions = {}): Promise<Desk> {
  const databaseUrl = await freshDatabase('sqlite');
  const core = await startCoreHere(databaseUrl, clock ? { clock } : {});
  const beside = await openBeside(databaseUrl, clock);
  const world = await createWorld(beside.ports);
  const desktop = await launchConsole(launch);
  return {
    core,
    beside,
    world,
    desktop,
    page: desktop.page,
    async close() {
      await desktop.close();
      await beside.close();
      await core.close();
    },
  };
}

export type UserName = keyof World['users'];

/** Signs in through the form, and waits for the home of the console. */
export async function signInAs({ core, world, page }: Pick<Desk, 'core' | 'world' | 'page'>, user: UserName): Promise<void> {
  await page.getByLabel('Server address').fill(core.url);
  await page.getByLabel('E-mail').fill(world.users[user].email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();
}
