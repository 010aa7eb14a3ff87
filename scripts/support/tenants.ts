import type { UserType } from '#contract/console/common.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createAccount, createCampaign, createPartner } from '../../core/domain/directory/directory.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import type { Ports } from '../../core/domain/ports.ts';

export const password = 'correct horse battery staple';

/**
 * Two partners and a staff user. The first partner has two accounts with a campaign each, three account users, and two partner users, one
 * of whom is limited to an account. The second has one account with a campaign, an account user and a partner user. All users have the same
 * password.
 */
export type Tenants = Awaited<ReturnType<typeof createTenants>>;

export async function createTenants(ports: Ports) {
  const partner = await createPartner(ports, operator, 'Northwind Voice');
  const otherPartner = await createPartner(ports, operator, 'Southgate Calling');
  const account = await createAccount(ports, operator, 'Blue Clinic', partner.id);
  const siblingAccount = await createAccount(ports, operator, 'Green Clinic', partner.id);
  const otherAccount = await createAccount(ports, operator, 'Red Garage', otherPartner.id);
  const campaign = await createCampaign(ports, operator, 'Appointment reminders', account.id);
  const siblingCampaign = await createCampaign(ports, operator, 'Recalls', siblingAccount.id);
  const otherCampaign = await createCampaign(ports, operator, 'Inspections', otherAccount.id);

  const user = async (email: string, name: string, userType: UserType, accountId: string | null, partnerId: string | null) => {
    const added = await createUser(ports, operator, { email: `${email}@example.com`, name, userType, accountId, partnerId }, password);
    return added.user;
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
