import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { adminOn } from '../support/admin.ts';
import { bareEnvironment } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory, onEachDatabase } from '../support/databases.ts';
import { type DirectAccess, databaseWithTenants, openDirect, type Tenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const admin = fileURLToPath(new URL('../../core/admin.ts', import.meta.url));
const toNumber = (_: unknown, n: number) => `+4930${1_000_000 + n}`;

describe('an import of a do-not-call list whose process is killed', () => {
  onEachDatabase((kind) => {
    let database: string;
    let tenants: Tenants;
    let direct: DirectAccess;
    beforeEach(async () => {
      ({ database, tenants } = await databaseWithTenants(kind));
      direct = await openDirect(database);
    });
    afterEach(() => direct.close());

    const args = (file: string) => ['do-not-call', 'import', file, '--account', tenants.account.id];
    const count = async (table: 'do_not_call' | 'number_imports' | 'number_import_parts') =>
      Number((await direct.storage.database.read(table).count({ rows: '*' }).first())?.['rows']);

    /** Runs the command, and kills it as soon as `hasComeSoFar` finds in the database what it waits for. */
    async function killedWhen(file: string, hasComeSoFar: () => Promise<boolean>): Promise<void> {
      const child = spawn(process.execPath, [admin, ...args(file)], {
        env: { ...bareEnvironment, DATABASE_URL: database },
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      await until(hasComeSoFar);
      child.kill('SIGKILL');
      expect(await ended).to.deep.equal([null, 'SIGKILL']);
    }

    it('has added nothing if it was still reading the file, and can be repeated', async () => {
      const numbers = Array.from({ length: 2_000 }, toNumber);
      const directory = freshDirectory();
      const pipe = join(directory, 'pipe');
      execFileSync('mkfifo', [pipe]);
      const writer = createWriteStream(pipe);
      // The pipe stays open, so the command never reaches the end of the list.
      writer.write(`${numbers.join('\n')}\n`);
      await killedWhen(pipe, async () => (await count('number_import_parts')) > 0);
      writer.destroy();
      expect(await count('do_not_call')).to.equal(0);
      const file = join(directory, 'numbers.csv');
      writeFileSync(file, numbers.join('\n'));
      expect(await adminOn(database).json(...args(file))).to.deep.equal({ added: 2_000, known: 0, wrong: [] });
      // A day later, a core deletes what's left of the first import. The import's time is changed instead of the clock, because a core
      // wouldn't trust a clock that's a day ahead of PostgreSQL's.
      await direct.storage.database.write('number_imports').update({ started_at: instant(Date.now() - 25 * 3_600_000) });
      const core = await startCoreHere(database);
      await until(async () => (await count('number_imports')) + (await count('number_import_parts')) === 0);
      await core.close();
      expect(await count('do_not_call')).to.equal(2_000);
    });

    it('is finished by a core, or by repeating it, if it was already adding the numbers', async () => {
      const file = join(freshDirectory(), 'numbers.csv');
      writeFileSync(file, Array.from({ length: 5_000 }, toNumber).join('\n'));
      await killedWhen(file, async () => (await count('do_not_call')) > 0);
      const added = await count('do_not_call');
      expect(added).to.be.within(1, 4_999);
      expect(await adminOn(database).json(...args(file))).to.deep.equal({ added: 5_000 - added, known: added, wrong: [] });
      await direct.storage.database.write('do_not_call').delete();
      // Minutes later, a core notices that the command has ended.
      await direct.storage.database.write('number_imports').update({ started_at: instant(Date.now() - 11 * 60_000) });
      const core = await startCoreHere(database);
      await until(async () => (await count('number_imports')) === 0);
      await core.close();
      expect(await count('do_not_call')).to.equal(5_000 - added);
    });
  });
});
