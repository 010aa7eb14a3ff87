import type { Command } from 'commander';
import { counted } from '#contract/text/count.ts';
import { Problem } from '../../domain/problem.ts';
import { adminCommand } from '../../program.ts';
import { maxShards } from '../../storage/engine/call-lanes.ts';
import { countCalls, createShards, findClusterFaults, requireCoordinator } from '../../storage/engine/postgres/cluster.ts';
import { type AdminContext, type Runner, withExamples } from '../command-line.ts';
import { assertNoOtherConnections } from './restore-postgres.ts';

export function shardCommands(program: Command, { withDatabase }: Runner): void {
  const shards = program.command('shards').description('divide the calls among several PostgreSQL servers, with Citus');
  const create = shards
    .command('create')
    .argument('<number>', `how many shards, from 1 to ${maxShards}; it can't be changed later`)
    .option('--move-calls', 'move the calls that the database already has')
    .description('divide the calls into shards; stop all cores first');
  withExamples(create, 'shards create 32', 'shards create 32 --move-calls').action(withDatabase(runCreate));
}

async function runCreate({ storage, location, output }: AdminContext, number: string, options: { moveCalls?: true }): Promise<void> {
  const { database } = storage;
  const count = Number(number);
  if (!/^\d+$/.test(number) || count < 1 || count > maxShards)
    throw new Problem('invalid', `The number of shards must be a whole number from 1 to ${maxShards}.`);
  if (location.kind === 'sqlite') throw new Problem('invalid', 'Shards need PostgreSQL with Citus. DATABASE_URL names a SQLite file.');
  const existing = database.shards().length;
  if (existing > 0) throw new Problem('conflict', `The database already has ${counted(existing, 'shard')}. Their number can't be changed.`);
  const faults = await findClusterFaults(database);
  if (faults.length > 0)
    throw new Problem('conflict', `The database can't have shards:\n${faults.map((fault) => `- ${fault}`).join('\n')}`);
  await requireCoordinator(database);
  await assertNoOtherConnections(database);
  const calls = await countCalls(database);
  if (calls > 0 && !options.moveCalls) {
    const what = `This would move ${counted(calls, 'call')}, in one transaction. A million took 35 s on two processors.`;
    throw new Problem(
      'conflict',
      `${what} Back up the database, stop all cores, then run: ${adminCommand} shards create ${count} --move-calls`,
    );
  }
  await createShards(database, count);
  output.answer(
    { shards: count, movedCalls: calls },
    `Created ${counted(count, 'shard')}${calls > 0 ? `, and moved ${counted(calls, 'call')}` : ''}.`,
  );
}
