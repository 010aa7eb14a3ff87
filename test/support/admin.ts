import { expect } from 'chai';
import { type Ended, runScript } from './commands.ts';

/** `npm run admin` on a database, or on that which the function names by then. */
export function adminOn(database: string | (() => string)) {
  const urlOf = typeof database === 'string' ? () => database : database;
  const admin = (args: string[], input = ''): Promise<Ended> => runScript('core/admin.ts', args, { env: { DATABASE_URL: urlOf() }, input });
  /** Runs with --json. @returns the one object that it answers with */
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await admin([...args, '--json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^\{.*\}\n$/);
    return JSON.parse(stdout);
  };
  return { admin, json };
}
