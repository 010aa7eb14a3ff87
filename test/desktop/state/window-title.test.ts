import { expect } from 'chai';
import type { SessionView } from '#contract/console/session.ts';
import { windowTitle } from '../../../desktop/renderer/state/labels.ts';

const session = (changes: Partial<SessionView['viewer']>, tenancy: SessionView['tenancy'] = null): SessionView => ({
  viewer: {
    id: 'v',
    email: 'ada@example.com',
    name: 'Ada',
    userType: 'partner',
    account: null,
    partner: { id: 'p', name: 'Northwind' },
    ...changes,
  },
  ...{ tenancy, secondFactor: false, dialer: 'off', reference: true, version: '0.9.0' },
});

describe('the window title', () => {
  const titles: readonly (readonly [string, SessionView, string])[] = [
    ['a partner user', session({}), 'Calls · Northwind · calls.example.com/eu'],
    ['a user of an account', session({ account: { id: 'a', name: 'Blue Clinic' } }), 'Calls · Blue Clinic · calls.example.com/eu'],
    ['staff without a tenancy', session({ userType: 'staff', partner: null }), 'Calls · None selected · calls.example.com/eu'],
    [
      'staff with a tenancy',
      session({ userType: 'staff', partner: null }, { kind: 'account', id: 'a', name: 'Blue Clinic' }),
      'Calls · Blue Clinic · calls.example.com/eu',
    ],
  ];
  for (const [who, view, title] of titles) {
    it(`names the screen, customer and server of ${who}`, () =>
      expect(windowTitle('Calls', view, 'https://calls.example.com/eu/')).to.equal(title));
  }
});
