export type Who =
  | 'account'
  | 'teammate'
  | 'sibling'
  | 'partner'
  | 'tied'
  | 'other'
  | 'otherPartner'
  | 'staff in account'
  | 'staff in partner';

export const everyone: Who[] = [
  'account',
  'teammate',
  'sibling',
  'partner',
  'tied',
  'other',
  'otherPartner',
  'staff in account',
  'staff in partner',
];

/** Whose keys each viewer can see and revoke. Each key is named after its creator. */
export const sees: Record<Who | 'staff', Who[]> = {
  account: ['account'],
  teammate: ['teammate'],
  sibling: ['sibling'],
  // Every user under the partner, and staff who created their key in the partner or in one of its accounts.
  partner: ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  // Created by anyone in the account that the user is limited to.
  tied: ['account', 'teammate', 'tied', 'staff in account'],
  other: ['other'],
  otherPartner: ['other', 'otherPartner'],
  'staff in account': ['account', 'teammate', 'tied', 'staff in account'],
  'staff in partner': ['account', 'teammate', 'sibling', 'partner', 'tied', 'staff in account', 'staff in partner'],
  staff: [],
};

export type Place = 'campaign' | 'siblingCampaign' | 'otherCampaign';
export const places: Place[] = ['campaign', 'siblingCampaign', 'otherCampaign'];

/** The campaigns that each key has access to. */
export const reaches: Record<Who, Place[]> = {
  account: ['campaign'],
  teammate: ['campaign'],
  sibling: ['siblingCampaign'],
  partner: ['campaign', 'siblingCampaign'],
  tied: ['campaign', 'siblingCampaign'],
  other: ['otherCampaign'],
  otherPartner: ['otherCampaign'],
  'staff in account': ['campaign'],
  'staff in partner': ['campaign', 'siblingCampaign'],
};

export const emails: Record<Who | 'staff', string> = {
  account: 'ada',
  teammate: 'tom',
  sibling: 'sue',
  partner: 'pat',
  tied: 'tia',
  other: 'oda',
  otherPartner: 'otto',
  'staff in account': 'stan',
  'staff in partner': 'stan',
  staff: 'stan',
};
