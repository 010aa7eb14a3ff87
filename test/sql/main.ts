// Writes core/storage/sql: the final text of every statement for each database. Run it after changing a query.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { cleanUp } from '../support/clean-up.ts';
import { databaseKinds } from '../support/databases.ts';
import { recordAll } from './record.ts';

for (const kind of databaseKinds) {
  for (const [file, text] of await recordAll(kind)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
await cleanUp();
