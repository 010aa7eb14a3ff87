// Writes core/storage/sql: the final text of every statement, for each database. Run it after changing a query.
//   npm run sql [FOLDER]
// Fails if code that creates a statement didn't run.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cleanUp } from '../support/clean-up.ts';
import { databaseKinds } from '../support/databases.ts';
import { recordAll } from './record.ts';
import { findUnreached } from './unreached.ts';

const [folder = 'core/storage/sql'] = process.argv.slice(2);

const unreached = await findUnreached(async () => {
  for (const kind of databaseKinds) {
    for (const [name, text] of await recordAll(kind)) {
      const file = join(folder, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }
});
await cleanUp();
for (const code of unreached) process.stderr.write(`test/sql/runs doesn't run ${code}\n`);
process.exitCode = unreached.length > 0 ? 1 : 0;
