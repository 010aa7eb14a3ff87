// Attacks real processes on both databases, and ends with one table of what was acknowledged and what became of it:
//   npm run chaos                                    everything, some twenty minutes
//   npm run chaos -- --quick                         a short version of each that has one
//   npm run chaos -- --only lock,races --database sqlite --calls 10000
// What needs root, strace or libfaketime is skipped without them, and says so. Exits with 1 if a column that must be 0 is not.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { cleanUp } from '../support/clean-up.ts';
import { killAll } from '../support/core.ts';
import { databaseKinds } from '../support/databases.ts';
import { cases } from './cases/index.ts';
import { attacksOf, begin, faultsOf, type Row } from './run.ts';
import { lineOf, tableOf } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    database: { type: 'string' },
    quick: { type: 'boolean', default: false },
    calls: { type: 'string' },
  },
});
const options = { isQuick: values.quick, ...(values.calls === undefined ? {} : { calls: Number(values.calls) }) };
const say = (line: string) => process.stdout.write(`${line}\n`);

const wanted = values.only?.split(',') ?? cases.map(({ name }) => name);
const unknown = wanted.filter((name) => !cases.some((one) => one.name === name));
if (unknown.length > 0) throw new Error(`No case ${unknown.join(', ')}. There are: ${cases.map(({ name }) => name).join(', ')}.`);
const kinds = databaseKinds.filter((kind) => values.database === undefined || values.database === kind);
if (kinds.length === 0) throw new Error(`--database ${values.database}: give ${databaseKinds.join(' or ')}.`);

// Where it is interrupted, too.
process.once('exit', killAll);

say(execFileSync('uname', ['-srm'], { encoding: 'utf8' }).trim());
const rows: Row[] = [];
try {
  const attacks = attacksOf(cases, kinds, options.isQuick).filter(({ one }) => wanted.includes(one.name));
  const { rowOf } = begin(attacks, options);
  for (const attack of attacks) {
    const row = await rowOf(attack);
    rows.push(row);
    say(lineOf(row));
  }
} finally {
  await cleanUp();
}
say(`\n${tableOf(rows)}`);
process.exitCode = rows.some((row) => faultsOf(row).length > 0) ? 1 : 0;
