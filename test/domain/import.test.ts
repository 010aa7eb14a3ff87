import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { type ImportFile, ImportInterrupted, importAll, importFileSchema } from '../../core/domain/directory/import.ts';
import type { ImportedEntity, ImportKind, ImportStore } from '../../core/domain/ports.ts';
import { Problem } from '../../core/domain/problem.ts';
import { fakePorts, readProblem } from '../support/ports.ts';

type Step = { kind: ImportKind } & Parameters<ImportStore['write']>[1];

/** Creates a fake store in memory for what an import reads and writes. The write with this number, counted from one, fails. */
function createImports(failingStep = 0, failure = new Error('The disk is full.')) {
  const entities: Record<ImportKind, Map<string, ImportedEntity>> = {
    partners: new Map(),
    accounts: new Map(),
    campaigns: new Map(),
    users: new Map(),
  };
  const steps: Step[] = [];
  const strangers = new Map<string, string | null>();
  const asked: string[][] = [];
  const imports: ImportStore = {
    find: async (kind, externalIds) => {
      asked.push([...externalIds]);
      return new Map([...entities[kind]].filter(([externalId]) => externalIds.includes(externalId)));
    },
    findEmails: async (emails) => {
      const owners = [...entities.users.values()].map(({ email, externalId }): [string, string | null] => [email ?? '', externalId]);
      return new Map([...owners, ...strangers].filter(([email]) => emails.includes(email)));
    },
    write: async (kind, step) => {
      if (steps.length + 1 === failingStep) throw failure;
      steps.push({ kind, ...step });
      for (const { entity } of [...step.added, ...step.changed]) entities[kind].set(entity.externalId, entity);
      return new Map();
    },
  };
  let pauses = 0;
  const run = (file: Partial<ImportFile>, pause: () => Promise<void> = async () => undefined) =>
    importAll(
      fakePorts(),
      imports,
      () => {
        pauses++;
        return pause();
      },
      operator.actor,
      importFileSchema.parse(file),
    );
  return { run, steps, strangers, asked, entities, pauses: () => pauses };
}

const partners = [
  { externalId: 'p1', name: 'One' },
  { externalId: 'p2', name: 'Two' },
];
const accounts = [{ externalId: 'a1', name: 'A', partner: 'p1' }];
const campaigns = [{ externalId: 'c1', name: 'C', account: 'a1' }];
const ada = { externalId: 'u1', email: 'ada@example.com', name: 'Ada', userType: 'account' as const, account: 'a1' };
const pat = { externalId: 'u2', email: 'pat@example.com', name: 'Pat', userType: 'partner' as const, partner: 'p1' };
const tia = { externalId: 'u3', email: 'tia@example.com', name: 'Tia', userType: 'partner' as const, partner: 'p1', account: 'a1' };
const stan = { externalId: 'u4', email: 'stan@example.com', name: 'Stan', userType: 'staff' as const };
const all = { partners, accounts, campaigns, users: [ada, pat, tia, stan] };
const counts = (added: number, changed: number, unchanged: number) => ({ added, changed, unchanged });

const staff = (count: number) => Array.from({ length: count }, (_, n) => ({ ...stan, externalId: `s${n}`, email: `s${n}@example.com` }));

describe('an import file', () => {
  const isFile = (file: object) => importFileSchema.safeParse(file).success;

  it('may omit any list', () => {
    expect(importFileSchema.parse({})).to.deep.equal({ partners: [], accounts: [], campaigns: [], users: [] });
  });

  for (const [kind, thing] of [
    ['partners', partners[0]],
    ['accounts', accounts[0]],
    ['campaigns', campaigns[0]],
    ['users', ada],
    ['users', tia],
    ['users', stan],
    ['users', { ...stan, disabled: true }],
  ] as const) {
    const { userType, disabled } = { userType: '', disabled: false, ...thing };
    it(`accepts only the known fields of ${disabled ? 'disabled ' : ''}${kind}${userType && ` of the type ${userType}`}`, () => {
      expect(importFileSchema.parse({ [kind]: [thing] })[kind]).to.deep.equal([thing]);
      expect(isFile({ [kind]: [{ ...thing, id: 'x' }] })).to.equal(false);
      for (const field of Object.keys({ ...thing })) {
        const isOptional = kind === 'users' && ['partner', 'account', 'disabled'].includes(field);
        expect(isFile({ [kind]: [{ ...thing, [field]: undefined }] }), `without ${field}`).to.equal(isOptional);
        expect(isFile({ [kind]: [{ ...thing, [field]: '' }] }), `with an empty ${field}`).to.equal(false);
      }
    });
  }

  it("can't contain lists other than partners, accounts, campaigns and users", () => {
    expect(isFile({ keys: [] })).to.equal(false);
  });

  for (const [field, most] of [
    ['externalId', 128],
    ['name', 200],
  ] as const) {
    it(`allows at most ${most} characters in ${field}`, () => {
      const named = (length: number) => isFile({ partners: [{ ...partners[0], [field]: 'x'.repeat(length) }] });
      expect(named(most)).to.equal(true);
      expect(named(most + 1)).to.equal(false);
    });
  }
});

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
    expect(await readProblem(importing('conflict'))).to.equal('conflict: ');
  });

  it('throws the original error if it fails before writing anything', async () => {
    expect(await readProblem(createImports(1).run({ partners }))).to.equal('no problem: Error: The disk is full.');
  });

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
      expect(await readProblem(run(importFileSchema.parse(file)))).to.equal(refusal);
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
      expect(await readProblem(run({ ...all, users: [user] }))).to.equal(`invalid: users.0: ${advice}`);
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
      expect(await readProblem(run(importFileSchema.parse({ ...all, ...moved })))).to.equal(
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
    expect(await readProblem(run({ users: [user('u1', 'b@example.com'), user('u2', 'c@example.com')] }))).to.equal(taken);
    expect((await run({ users: [user('u1', 'c@example.com'), user('u2', 'a@example.com')] })).users).to.deep.equal(counts(0, 2, 0));
  });

  it("refuses the email address of an imported user who isn't in the file, and of a user who wasn't imported", async () => {
    const taken = (email: string) => `conflict: Another user already has the email address ${email}.`;
    const { run, strangers } = createImports();
    await run({ users: [stan] });
    strangers.set('sue@example.com', null);
    for (const email of [stan.email, 'sue@example.com'])
      expect(await readProblem(run({ users: [{ ...stan, externalId: 'u9', email }] }))).to.equal(taken(email));
  });
});
