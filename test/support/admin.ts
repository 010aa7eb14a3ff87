import { expect } from 'chai';
import { type Ended, runScript } from './commands.ts';
import { type DatabaseKind, freshDatabase, onEachDatabase } from './databases.ts';

/** Runs `npm run admin` on a database, which a function may choose for each run. */
export function adminOn(database: string | (() => string)) {
  const getUrl = typeof database === 'string' ? () => database : database;
  const admin = (args: string[], input = ''): Promise<Ended> =>
    runScript('core/admin.ts', args, { env: { DATABASE_URL: getUrl() }, input });
  /** Runs with --json. @returns the JSON object that it prints */
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await admin([...args, '--json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^\{.*\}\n$/);
    return JSON.parse(stdout);
  };
  return { admin, json };
}

type Admin = ReturnType<typeof adminOn> & { kind: DatabaseKind; database(): string };

/** Runs the same tests on each kind of database. Every test has its own database. */
export function describeAdmin(title: string, tests: (on: Admin) => void): void {
  describe(title, () => {
    onEachDatabase((kind) => {
      let url: string;
      beforeEach(async () => {
        url = await freshDatabase(kind);
      });
      const database = () => url;
      tests({ ...adminOn(database), kind, database });
    });
  });
}
