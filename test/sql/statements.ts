import { createFixtures, type Runs } from './fixtures.ts';
import { createCallsRuns } from './runs/calls.ts';
import { createDirectoryRuns } from './runs/directory.ts';
import { createKeysRuns } from './runs/keys.ts';
import { createUsersRuns } from './runs/users.ts';

export function createRuns(database: Parameters<typeof createFixtures>[0]): Runs {
  const fixtures = createFixtures(database);
  return { ...createCallsRuns(fixtures), ...createKeysRuns(fixtures), ...createUsersRuns(fixtures), ...createDirectoryRuns(fixtures) };
}
