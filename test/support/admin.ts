import { expect } from 'chai';
import { type Ended, runScript } from './commands.ts';

/** `npm run admin` on a database. */
export function adminOn(database: string) {
  const admin = (args: string[], input?: string): Promise<Ended> =>
    runScript('core/admin.ts', args, { env: { DATABASE_URL: database }, ...(input === undefined ? {} : { input }) });
  /** Runs with --json. @returns the one object that it answers with */
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await admin([...args, '--json']);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^\{.*\}\n$/);
    return JSON.parse(stdout);
  };
  return { admin, json };
}
