// Fills an empty database with realistic sample data: a partner, two accounts, campaigns, a user of each type and a few API keys. Refuses a
// database that already has users. Prints only lines to paste into a shell, so its output can also be piped into one.
import { randomBytes } from 'node:crypto';
import { changeApiKey, createApiKey } from '../core/domain/api-keys.ts';
import { operator } from '../core/domain/audit/audit.ts';
import { createAccount, createCampaign, createPartner } from '../core/domain/directory/directory.ts';
import { createUser } from '../core/domain/directory/users.ts';
import type { User } from '../core/domain/model.ts';
import type { Ports } from '../core/domain/ports.ts';
import { Problem } from '../core/domain/problem.ts';
import { ConfigError, readDatabaseLocation } from '../core/server/start/config.ts';
import { openDirect } from './support/direct-database.ts';

/** All users have the same password, which is random for each run. This database is only for trying things out. */
const password = randomBytes(9).toString('base64url');

async function fill(ports: Ports): Promise<string> {
  if ((await ports.stores.users.count()) > 0) {
    throw new Problem(
      'conflict',
      'This database already has users. To go on with it, start the core without `npm run demo`. Otherwise, use an empty one: DATABASE_URL=sqlite:./data/demo.db npm run demo',
    );
  }
  const partner = await createPartner(ports, operator, 'Northwind Voice');
  const clinic = await createAccount(ports, operator, 'Harbour Dental', partner.id);
  const garage = await createAccount(ports, operator, 'Miller & Sons Garage', partner.id);
  const reminders = await createCampaign(ports, operator, 'Appointment reminders', clinic.id);
  await createCampaign(ports, operator, 'Missed appointments', clinic.id);
  await createCampaign(ports, operator, 'Car ready for pick-up', garage.id);

  const add = async (email: string, name: string, userType: User['userType'], accountId: string | null, partnerId: string | null) => {
    const { user } = await createUser(ports, operator, { email, name, userType, accountId, partnerId }, password);
    return user;
  };
  const ada = await add('ada@harbour.example', 'Ada Byrne', 'account', clinic.id, null);
  const grace = await add('grace@harbour.example', 'Grace Okafor', 'account', clinic.id, null);
  const paul = await add('paul@northwind.example', 'Paul Lindqvist', 'partner', null, partner.id);
  await add('tess@northwind.example', 'Tess Moreau', 'partner', garage.id, partner.id);
  await add('sam@callkey.example', 'Sam Whitaker', 'staff', null, null);

  const key = async (user: User, name: string, expiration: Parameters<typeof createApiKey>[2]['expiration']) => {
    const actor = { who: { id: user.id, name: user.name }, address: 'local' };
    const caller = { viewer: { ...user, tenancy: null }, actor };
    return { caller, ...(await createApiKey(ports, caller, { name, expiration, timeZone: 'Europe/Dublin' })) };
  };
  const { keyValue } = await key(ada, 'Practice software', { kind: 'years', years: 1 });
  const limited = await key(ada, 'One call per day', { kind: 'none' });
  await changeApiKey(ports, limited.caller, limited.apiKey.id, { callsPerDay: 1 });
  await key(grace, 'Front desk tablet', { kind: 'none' });
  await key(paul, 'Nightly sync', { kind: 'years', years: 5 });

  const server = `http://127.0.0.1:${process.env['PORT'] || '8080'}`;
  return `export CALLKEY_SERVER=${server}
export CALLKEY_API_KEY=${keyValue}
export CALLKEY_CAMPAIGN=${reminders.id}
export LIMITED_API_KEY=${limited.keyValue}
echo 'Sign in at ${server} as ada@harbour.example, with the password ${password}'
`;
}

try {
  const { ports, storage } = await openDirect(readDatabaseLocation(process.env));
  try {
    process.stdout.write(await fill(ports));
  } finally {
    await storage.close();
  }
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof ConfigError ? 2 : 1;
}
