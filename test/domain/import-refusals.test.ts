import { expect } from 'chai';
import { importFileSchema } from '../../core/domain/directory/import.ts';
import { accounts, ada, all, campaigns, counts, createImports, partners, pat, readRefusal, stan, tia } from '../support/ports.ts';

describe('importing', () => {
  for (const [what, file, refusal] of [
    ['a duplicate external ID', { partners: [...partners, ...partners] }, 'invalid: partners.2.externalId: Duplicate externalId: p1.'],
    [
      'a duplicate email address',
      { users: [stan, { ...stan, externalId: 'u5' }] },
      'invalid: users.1.email: Duplicate email: stan@example.com.',
    ],
    ['an account with an unknown partner', { accounts }, 'invalid: accounts.0.partner: No partner has the externalId p1.'],
    ['a campaign with an unknown account', { campaigns }, 'invalid: campaigns.0.account: No account has the externalId a1.'],
    ['a user with an unknown account', { users: [ada] }, 'invalid: users.0.account: No account has the externalId a1.'],
    ['a user with an unknown partner', { users: [stan, pat] }, 'invalid: users.1.partner: No partner has the externalId p1.'],
    [
      "a partner user with another partner's account",
      { ...all, users: [{ ...tia, partner: 'p2' }] },
      "invalid: users.0.account: The account a1 doesn't belong to the partner p2.",
    ],
  ] as const) {
    it(`refuses ${what}, says where, and writes nothing`, async () => {
      const { run, steps } = createImports();
      expect(await readRefusal(run(importFileSchema.parse(file)))).to.equal(refusal);
      expect(steps).to.deep.equal([]);
    });
  }

  for (const [what, user] of [
    ['an account user without an account', { ...ada, account: undefined }],
    ['an account user with a partner', { ...ada, partner: 'p1' }],
    ['a partner user without a partner', { ...pat, partner: undefined }],
    ['staff with a partner', { ...stan, partner: 'p1' }],
    ['staff with an account', { ...stan, account: 'a1' }],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const { run } = createImports();
      const advice =
        'An account user needs an account, a partner user needs a partner (and may be limited to one of its accounts), and staff must have neither.';
      expect(await readRefusal(run({ ...all, users: [user] }))).to.equal(`invalid: users.0: ${advice}`);
    });
  }

  for (const [kind, moved] of [
    ['account', { accounts: [{ externalId: 'a1', name: 'A', partner: 'p2' }] }],
    [
      'campaign',
      { accounts: [...accounts, { ...accounts[0], externalId: 'a2' }], campaigns: [{ externalId: 'c1', name: 'C', account: 'a2' }] },
    ],
  ] as const) {
    it(`refuses to move ${kind === 'account' ? 'an account' : 'a campaign'} that belongs elsewhere`, async () => {
      const { run } = createImports();
      await run(all);
      const name = kind === 'account' ? 'a1' : 'c1';
      expect(await readRefusal(run(importFileSchema.parse({ ...all, ...moved })))).to.equal(
        `invalid: ${kind}s.0: The ${kind} ${name} already belongs elsewhere. Only users can be moved.`,
      );
    });
  }

  it('lets a user take over an email address only from a user earlier in the file', async () => {
    const user = (externalId: string, email: string) => ({ ...stan, externalId, email });
    const first = [user('u1', 'a@example.com'), user('u2', 'b@example.com')];
    const { run } = createImports();
    await run({ users: first });
    const taken = 'conflict: Another user already has the email address b@example.com.';
    expect(await readRefusal(run({ users: [user('u1', 'b@example.com'), user('u2', 'c@example.com')] }))).to.equal(taken);
    expect((await run({ users: [user('u1', 'c@example.com'), user('u2', 'a@example.com')] })).users).to.deep.equal(counts(0, 2, 0));
  });

  it("refuses the email address of an imported user who isn't in the file", async () => {
    const { run } = createImports();
    await run({ users: [stan] });
    const taken = 'conflict: Another user already has the email address stan@example.com.';
    expect(await readRefusal(run({ users: [{ ...stan, externalId: 'u9' }] }))).to.equal(taken);
  });

  it("refuses the email address of a user who wasn't imported", async () => {
    const { run, strangers } = createImports();
    strangers.set(stan.email, null);
    expect(await readRefusal(run({ users: [stan] }))).to.equal('conflict: Another user already has the email address stan@example.com.');
  });
});
