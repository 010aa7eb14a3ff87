import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { operator, userEvent } from '../../core/domain/audit/audit.ts';
import { resetPassword } from '../../core/domain/directory/users.ts';
import { describeAdmin } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, openDirect, password, placeCall, signIn, signInFirst } from '../support/tenants.ts';

const file = (content: unknown) => {
  const path = join(freshDirectory(), 'import.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
};

const all = {
  partners: [{ externalId: 'p1', name: 'One' }],
  accounts: [{ externalId: 'a1', name: 'A', partner: 'p1' }],
  campaigns: [{ externalId: 'c1', name: 'C', account: 'a1' }],
  users: [
    { externalId: 'u1', email: 'ada@example.com', name: 'Ada', userType: 'account', account: 'a1' },
    { externalId: 'u2', email: 'pat@example.com', name: 'Pat', userType: 'partner', partner: 'p1' },
    { externalId: 'u3', email: 'stan@example.com', name: 'Stan', userType: 'staff' },
  ],
};

describeAdmin('admin import', ({ admin, json, kind, database }) => {
  it('ends the sessions and the link of a user who gets another email address, and says so', async () => {
    await json('import', file(all));
    const [, user] = (await json('user', 'list')).users;
    const core = await startCoreHere(database());
    const direct = await openDirect(database());
    try {
      const { ports } = direct;
      const [listed] = await ports.stores.users.list({ kind: 'all' }, { search: user.email, awaySince: null }, null, 1);
      if (!listed) throw new Error("The user doesn't exist.");
      await resetPassword(ports, operator, listed, password);
      const link = (subject: string, keepsPassword: boolean) => {
        const event = userEvent(ports, operator.actor, 'user.linked', listed);
        return ports.stores.links.create({ id: listed.id }, { issuer: 'https://login.example.com', subject }, keepsPassword, event);
      };
      await link('there', true);
      const cookie = await signIn(core.url, listed.email);
      const users = all.users.map((each) => (each.email === listed.email ? { ...each, email: 'new@example.com' } : each));
      const { signedOut } = await json('import', file({ ...all, users }));
      expect(signedOut).to.deep.equal([{ email: 'new@example.com', previousEmail: listed.email, sessions: 1, unlinked: true }]);
      expect((await ask('GET', `${core.url}/console/session`, { cookie })).status).to.equal(401);
      expect(await ports.stores.links.list()).to.deep.equal([]);
      const actions = await direct.storage.database.read('audit_events').where({ subject_id: listed.id }).pluck('action');
      expect(actions).to.include('user.unlinked');
      expect((await json('import', file({ ...all, users }))).signedOut).to.deep.equal([]);
      const moved = users.map((each) => (each.email === 'new@example.com' ? { ...each, userType: 'staff', partner: undefined } : each));
      await signIn(core.url, 'new@example.com');
      expect((await admin(['import', file({ ...all, users: moved })])).stdout).to.match(/SIGNED OUT[\s\S]+new@example.com/);
      // The password is the previous person's, so it ends with the first sign-in of the new one.
      expect(await link('new', false)).to.equal(true);
      const body = { email: 'new@example.com', password };
      expect((await ask('POST', `${core.url}/console/session`, { body })).status).to.equal(401);
    } finally {
      await direct.close();
      await core.close();
    }
  });

  it('shows the readable spelling of email addresses', async () => {
    const user = { externalId: 'u1', email: 'joerg@xn--mnchen-3ya.example', name: 'Jörg', userType: 'staff' };
    expect((await json('import', file({ users: [user] }))).passwords[0].email).to.equal('joerg@münchen.example');
    const renamed = { ...user, email: 'joerg@bücher.example' };
    const { signedOut } = await json('import', file({ users: [renamed] }));
    expect(signedOut[0]).to.include({ email: 'joerg@bücher.example', previousEmail: 'joerg@münchen.example' });
    for (const users of [[{ ...renamed, externalId: 'u2' }], [renamed, { ...renamed, externalId: 'u2' }]])
      expect((await admin(['import', file({ users })])).stderr).to.contain(' joerg@bücher.example.');
  });

  for (const [what, content, complaint] of [
    ["a file that isn't JSON", '{', 'as JSON'],
    ['a reference to an unknown entry', { accounts: [{ externalId: 'a', name: 'A', partner: 'nope' }] }, 'accounts.0.partner'],
    [
      'a name with invisible characters',
      { partners: [{ externalId: 'p1', name: 'One\u202e' }] },
      'partners.0.name: Remove the invisible character U+202E',
    ],
    [
      'an entry without its fields',
      { partners: [{}] },
      'partners.0.externalId: This field is required.\npartners.0.name: This field is required.',
    ],
    ['an unknown field', { x: 1 }, 'import.json: x: Unknown field.'],
    ['a list', [], 'import.json: Must be an object.'],
  ] as const) {
    it(`refuses ${what}, says where, and imports nothing`, async () => {
      const { code, stderr } = await admin(['import', file(content)]);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.include(complaint);
    });
  }

  it('disables and enables users, as the console does', async () => {
    const core = await startCoreHere(database());
    await using direct = await openDirect(database());
    const { passwords } = await json('import', file(all));
    const ada = await signInFirst(core.url, 'ada@example.com', passwords[0].password);
    const { keyValue } = await createKey(core.url, ada);
    const campaign = (await direct.storage.database.read('campaigns').first())?.id ?? '';
    const statuses = async () => [
      (await ask('GET', `${core.url}/console/session`, { cookie: ada })).status,
      (await placeCall(core.url, campaign, keyValue)).status,
    ];
    const importAda = async (disabled?: boolean) => (await json('import', file({ users: [{ ...all.users[0], disabled }] }))).users;
    expect(await statuses()).to.deep.equal([200, 202]);

    expect(await importAda(true)).to.deep.equal({ added: 0, changed: 1, unchanged: 0 });
    expect(await statuses()).to.deep.equal([401, 401]);
    for (const disabled of [true, undefined]) expect(await importAda(disabled)).to.deep.equal({ added: 0, changed: 0, unchanged: 1 });
    expect(await statuses()).to.deep.equal([401, 401]);

    expect(await importAda(false)).to.deep.equal({ added: 0, changed: 1, unchanged: 0 });
    expect(await statuses()).to.deep.equal([401, 202]);
    const events = await direct.storage.database.read('audit_events').where('action', 'like', 'user.%abled').orderBy('id');
    expect(events.map(({ action, subject_name }) => `${action} ${subject_name}`)).to.deep.equal(['user.disabled Ada', 'user.enabled Ada']);
    await core.close();
  });

  it('shows the one-time passwords of the users that were or may have been created if it fails partway through, and a second run imports the rest', async () => {
    const one = { name: 'U', userType: 'staff' };
    const users = Array.from({ length: 27 }, (_, n) => ({ ...one, externalId: `u${n}`, email: `u${n}@example.com` }));
    const sent = file({ ...all, users });
    await using direct = await openDirect(database());
    const { write, read } = direct.storage.database;
    // Simulates an unexpected failure: the database refuses the 27th user.
    await write.raw(
      kind === 'sqlite'
        ? `CREATE TRIGGER refusing BEFORE INSERT ON users WHEN NEW.email = 'u26@example.com' BEGIN SELECT RAISE(ABORT, 'refused'); END`
        : `ALTER TABLE users ADD CONSTRAINT refusing CHECK (email <> 'u26@example.com')`,
    );
    const failed = await admin(['import', sent, '--json']);
    const there: string[] = await read('users').pluck('email');
    const { passwords, uncertain } = JSON.parse(failed.stdout);
    const toEmails = (listed: { email: string }[]) => listed.map(({ email }) => email);
    expect(failed.code, failed.stderr).to.equal(1);
    expect(failed.stderr).to.include('The import stopped before it finished');
    expect(there).to.have.length.within(1, 26);
    expect(toEmails(passwords)).to.have.members(there);
    expect([...there, ...toEmails(uncertain)]).to.have.length(27);
    await write.raw(kind === 'sqlite' ? 'DROP TRIGGER refusing' : 'ALTER TABLE users DROP CONSTRAINT refusing');
    const again = await json('import', sent);
    expect(again.users).to.deep.equal({ added: 27 - there.length, changed: 0, unchanged: there.length });
    expect(again.campaigns).to.deep.equal({ added: 0, changed: 0, unchanged: 1 });
  });
});
