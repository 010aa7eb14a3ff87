// Attacks real processes on both databases, and ends with a table that compares what was acknowledged with the database:
//   npm run chaos                                    everything, some twenty minutes
//   npm run chaos -- --quick                         a short version of each that has one
//   npm run chaos -- --only lock,races --database sqlite
// Skips what needs root, strace or libfaketime if they're missing, and says so. Exits with 1 if a column that must be 0 isn't.
import { Console } from 'node:console';
import { release } from 'node:os';
import { parseArgs } from 'node:util';
import { cleanUp } from '../support/clean-up.ts';
import { killAll } from '../support/core.ts';
import { databaseKinds } from '../support/databases.ts';
import { cases } from './cases/index.ts';
import { begin, formatRow, listAttacks, listFaults, type Row } from './run.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    database: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});
const names = cases.map(({ name }) => name);
const chosen = values.only?.split(',') ?? names;
const unknown = chosen.filter((name) => !names.includes(name));
if (unknown.length > 0) throw new Error(`Unknown cases: ${unknown.join(', ')}. Choose from: ${names.join(', ')}.`);
const kinds = databaseKinds.filter((kind) => values.database === undefined || values.database === kind);
if (kinds.length === 0) throw new Error(`--database ${values.database} must be ${databaseKinds.join(' or ')}.`);

// This also runs if the process is interrupted.
process.once('exit', killAll);

const { log, table } = new Console(process.stdout);
log(`${process.platform} ${release()} ${process.arch}`);
const rows: Row[] = [];
try {
  const attacks = listAttacks(cases, kinds, values.quick).filter(({ one }) => chosen.includes(one.name));
  const { startRow } = begin(attacks, values.quick);
  for (const attack of attacks) {
    const row = await startRow(attack);
    rows.push(row);
    log(formatRow(row));
  }
} finally {
  await cleanUp();
}
table(Object.fromEntries(rows.map((row) => [`${row.name} on ${row.kind}`, { ...row.counts, s: row.seconds }])));
process.exitCode = rows.some((row) => listFaults(row).length > 0) ? 1 : 0;
