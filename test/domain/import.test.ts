import { expect } from 'chai';
import { ImportInterrupted } from '../../core/domain/directory/import.ts';
import { Problem } from '../../core/domain/problem.ts';
import { ada, all, counts, createImports, partners, readRefusal, stan } from '../support/ports.ts';

const staff = (count: number) => Array.from({ length: count }, (_, n) => ({ ...stan, externalId: `s${n}`, email: `s${n}@example.com` }));

describe('importing', () => {
  it('records an event for each entry in the scope of its partner and account', async () => {
    const { run, steps, entities } = createImports();
    await run(all);
    await run({ partners: [{ externalId: 'p1', name: 'Renamed' }] });
    const events = steps.flatMap(({ added, changed }) => [...added, ...changed]).flatMap(({ event }) => event ?? []);
    expect(events.map(({ action, subject }) => [action, subject.kind, subject.name])).to.deep.equal([
      ['partner.added', 'partner', 'One'],
      ['partner.added', 'partner', 'Two'],
      ['account.added', 'account', 'A'],
      ['campaign.added', 'campaign', 'C'],
      ['user.added', 'user', 'Ada'],
      ['user.added', 'user', 'Pat'],
      ['user.added', 'user', 'Tia'],
      ['user.added', 'user', 'Stan'],
      ['partner.changed', 'partner', 'Renamed'],
    ]);
    const [p1, p2, a1] = [entities.partners.get('p1')?.id, entities.partners.get('p2')?.id, entities.accounts.get('a1')?.id];
    const inAccount = { accountId: a1, partnerId: p1 };
    const inPartner = { accountId: null, partnerId: p1 };
    expect(events.map(({ owningScope }) => owningScope)).to.deep.equal([
      inPartner,
      { accountId: null, partnerId: p2 },
      inAccount,
      inAccount,
      inAccount,
      inPartner,
      inAccount,
      null,
      inPartner,
    ]);
    expect(events[0]?.subject.id).to.equal(p1);
  });

  for (const [field, changed] of [
    ['name', { ...stan, name: 'Stanley' }],
    ['email address', { ...stan, email: 'new@example.com' }],
    ['type and partner', { ...stan, userType: 'partner', partner: 'p1' }],
    ['type and account', { ...stan, userType: 'account', account: 'a1' }],
  ] as const) {
    it(`updates a user's ${field}, keeping their ID and password`, async () => {
      const { run, entities } = createImports();
      await run(all);
      const id = entities.users.get('u4')?.id;
      const { users, passwords } = await run({ users: [changed] });
      expect([users, passwords, entities.users.get('u4')?.id]).to.deep.equal([counts(0, 1, 0), [], id]);
      expect(entities.users.get('u4')).to.include({ name: changed.name, email: changed.email, userType: changed.userType });
    });
  }

  it('disables and enables users only if the file says so, and records that separately from other changes', async () => {
    const { run, steps, entities } = createImports();
    await run({ users: [stan, { ...stan, externalId: 'u5', email: 'sue@example.com', disabled: true }] });
    const importStan = async (change: { name?: string; disabled?: boolean }) => {
      steps.length = 0;
      const { users } = await run({ users: [{ ...stan, ...change }] });
      const actions = steps.flatMap(({ changed }) => changed).flatMap(({ event, disabling }) => [event, disabling]);
      return [users, entities.users.get('u4')?.disabled, ...actions.map((event) => event?.action ?? null)];
    };
    expect(steps.flatMap(({ added }) => added).map(({ disabling }) => disabling?.action)).to.deep.equal([undefined, 'user.disabled']);
    expect(await importStan({ disabled: false })).to.deep.equal([counts(0, 0, 1), null]);
    expect(await importStan({ disabled: true })).to.deep.equal([counts(0, 1, 0), true, null, 'user.disabled']);
    expect(await importStan({ disabled: true })).to.deep.equal([counts(0, 0, 1), true]);
    expect(await importStan({ name: 'Stanley' })).to.deep.equal([counts(0, 1, 0), true, 'user.changed', null]);
    expect(await importStan({ disabled: false })).to.deep.equal([counts(0, 1, 0), false, 'user.changed', 'user.enabled']);
  });

  it('looks up entries that are referenced but not in the file, each only once', async () => {
    const { run, entities, asked } = createImports();
    await run(all);
    asked.length = 0;
    const eve = { ...ada, externalId: 'u5', email: 'eve@example.com' };
    const { users } = await run({ users: [eve, { ...eve, externalId: 'u6', email: 'fay@example.com' }] });
    expect([users, entities.users.get('u5')?.accountId]).to.deep.equal([counts(2, 0, 0), entities.accounts.get('a1')?.id]);
    expect(asked.filter((externalIds) => externalIds.includes('a1'))).to.deep.equal([['a1']]);
    asked.length = 0;
    await run(all);
    expect(asked.filter((externalIds) => externalIds.includes('p1'))).to.deep.equal([['p1', 'p2']]);
    expect(asked.flat()).not.to.include(undefined);
  });

  it('writes 500 entries or 25 users per batch, and lets others write in between', async () => {
    const { run, steps, pauses } = createImports();
    await run({ partners: Array.from({ length: 501 }, (_, n) => ({ externalId: `p${n}`, name: 'P' })), users: staff(51) });
    expect(steps.map(({ kind, added }) => [kind, added.length])).to.deep.equal([
      ['partners', 500],
      ['partners', 1],
      ['users', 25],
      ['users', 25],
      ['users', 1],
    ]);
    expect(pauses()).to.equal(4);
  });

  it('reports what was written so far when it fails, and the passwords of users who may have been created', async () => {
    const { run } = createImports(2);
    const error = await run({ partners: [...partners], users: staff(1) }).catch((failure) => failure);
    expect(error).to.be.instanceOf(ImportInterrupted).and.include({ name: 'ImportInterrupted', message: 'The import was interrupted.' });
    expect([error.soFar.partners, error.soFar.users, error.soFar.passwords]).to.deep.equal([counts(2, 0, 0), counts(0, 0, 0), []]);
    expect(error.soFar.uncertain.map(({ email }: { email: string }) => email)).to.deep.equal(['s0@example.com']);
    expect(error.cause).to.have.property('message', 'The disk is full.');
  });

  it("reports what was written so far when it's interrupted", async () => {
    const { run } = createImports();
    const stop = () => Promise.reject(new Error('Received SIGINT.'));
    const error = await run({ users: staff(26) }, stop).catch((failure) => failure);
    expect([error.soFar.users, error.soFar.passwords.length]).to.deep.equal([counts(25, 0, 0), 25]);
  });

  it('reports the passwords of users who may have been created even if nothing else was', async () => {
    const importing = (code: 'unavailable' | 'conflict') => createImports(1, new Problem(code, '')).run({ users: staff(1) });
    const error = await importing('unavailable').catch((failure) => failure);
    expect([error.name, error.soFar.uncertain.length]).to.deep.equal(['ImportInterrupted', 1]);
    expect(await readRefusal(importing('conflict'))).to.equal('conflict: ');
  });

  it('throws the original error if it fails before writing anything', async () => {
    expect(await readRefusal(createImports(1).run({ partners }))).to.equal('undefined: The disk is full.');
  });
});
