import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { adminOn, bareEnvironment } from '../support/commands.ts';
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
    const count = async () => Number((await direct.storage.database.read('do_not_call').count({ rows: '*' }).first())?.['rows']);

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

    it('has added nothing if it was still checking the file, and can be repeated', async () => {
      const numbers = Array.from({ length: 2_000 }, toNumber);
      const directory = freshDirectory();
      const pipe = join(directory, 'pipe');
      execFileSync('mkfifo', [pipe]);
      const writer = createWriteStream(pipe);
      let isWritten = false;
      // The pipe stays open, so the command never reaches the end of the list.
      writer.write(`${numbers.join('\n')}\n`, () => {
        isWritten = true;
      });
      await killedWhen(pipe, async () => isWritten);
      writer.destroy();
      expect(await count()).to.equal(0);
      const file = join(directory, 'numbers.csv');
      writeFileSync(file, numbers.join('\n'));
      expect(await adminOn(database).json(...args(file))).to.include({ added: 2_000, known: 0 });
    });

    it('keeps the numbers that it was adding, and is finished by repeating it', async () => {
      const file = join(freshDirectory(), 'numbers.csv');
      writeFileSync(file, Array.from({ length: 5_000 }, toNumber).join('\n'));
      await killedWhen(file, async () => (await count()) > 0);
      const added = await count();
      expect(added).to.be.within(1, 4_999);
      expect(await direct.storage.database.read('audit_events').where({ action: 'do-not-call.imported' })).to.have.lengthOf(1);
      expect(await adminOn(database).json(...args(file))).to.include({ added: 5_000 - added, known: added });
      expect(await count()).to.equal(5_000);
    });
  });
});
