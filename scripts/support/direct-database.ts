import type { UserType } from '#contract/console/common.ts';
import { portsWithoutCore } from '../../core/admin/ports.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createAccount, createCampaign, createPartner } from '../../core/domain/directory/directory.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Ports } from '../../core/domain/ports.ts';
import { systemClock } from '../../core/server/start/system.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, unobserved } from '../../core/storage/storage.ts';

/** Migrates a database, and opens it for scripts and tests without a core. @param others ports to use instead of the usual ones */
export async function openDirect(database: string | DatabaseLocation, { clock = systemClock, ...others }: Partial<Ports> = {}) {
  const storage = openStorage(typeof database === 'string' ? parseDatabaseUrl(database) : database, clock, unobserved);
  await storage.migrate();
  const ports: Ports = { ...portsWithoutCore(storage), clock, ...others };
  return { ports, storage };
}

export const password = 'correct horse battery staple';

/**
 * Two partners and a staff user. The first partner has two accounts with a campaign each, three account users, and two partner users, one
 * of whom is limited to an account. The second has one account with a campaign, an account user and a partner user. All users have the same
 * password.
 */
export type Tenants = Awaited<ReturnType<typeof createTenants>>;

export async function createTenants(ports: Ports) {
  const partnerOf = async (name: string) => {
    const { id } = await createPartner(ports, operator, name);
    return { id, name };
  };
  const accountOf = async (name: string, partnerId: string) => {
    const { id } = await createAccount(ports, operator, name, partnerId);
    return { id, name, partnerId };
  };
  const campaignOf = async (name: string, accountId: string) => {
    const { id } = await createCampaign(ports, operator, name, accountId);
    return { id, name, accountId };
  };
  const partner = await partnerOf('Northwind Voice');
  const otherPartner = await partnerOf('Southgate Calling');
  const account = await accountOf('Blue Clinic', partner.id);
  const siblingAccount = await accountOf('Green Clinic', partner.id);
  const otherAccount = await accountOf('Red Garage', otherPartner.id);
  const campaign = await campaignOf('Appointment reminders', account.id);
  const siblingCampaign = await campaignOf('Recalls', siblingAccount.id);
  const otherCampaign = await campaignOf('Inspections', otherAccount.id);

  const user = async (email: string, name: string, userType: UserType, accountId: string | null, partnerId: string | null) => {
    const input = { email: `${email}@example.com`, name, userType, accountId, partnerId };
    const { user } = await createUser(ports, operator, input, password);
    return { id: user.id, email: user.email, name, userType, account: user.account, partner: user.partner };
  };
  return {
    partner,
    otherPartner,
    account,
    siblingAccount,
    otherAccount,
    campaign,
    siblingCampaign,
    otherCampaign,
    users: {
      account: await user('ada', 'Ada Account', 'account', account.id, null),
      teammate: await user('tom', 'Tom Teammate', 'account', account.id, null),
      sibling: await user('sue', 'Sue Sibling', 'account', siblingAccount.id, null),
      partner: await user('pat', 'Pat Partner', 'partner', null, partner.id),
      tied: await user('tia', 'Tia Tied', 'partner', account.id, partner.id),
      other: await user('oda', 'Oda Other', 'account', otherAccount.id, null),
      otherPartner: await user('otto', 'Otto Other', 'partner', null, otherPartner.id),
      staff: await user('stan', 'Stan Staff', 'staff', null, null),
    },
  };
}
