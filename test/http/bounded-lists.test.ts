import { expect } from 'chai';
import { callsSchema } from '#contract/console/calls.ts';
import { accountsSchema, campaignsSchema } from '#contract/console/directory.ts';
import { tenanciesSchema } from '#contract/console/session.ts';
import { deletionSchema, usersSchema } from '#contract/console/users.ts';
import { limits } from '#contract/limits.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import { instant } from '../../core/domain/instant.ts';
import { timeCursors } from '../../core/domain/paging.ts';
import { turnLimits } from '../../core/http/middleware/turns.ts';
import { openCore } from '../support/core.ts';
import { numbers, onEachDatabase } from '../support/databases.ts';
import { ask, readCode } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { insertCalls, signIn } from '../support/tenants.ts';

const rows = limits.directoryPage + 2;

describe('console lists that are longer than a page', () => {
  onEachDatabase((kind) => {
    const its = openOnce(() => openCore({ kind }));
    let partner: string;
    let staff: string;

    const insert = (table: string, values: string, count: number) =>
      its.direct.storage.database.write.raw(`INSERT INTO ${table} SELECT ${values} FROM ${numbers(kind, count)}`);
    const text = (start: string) => `'${start}' || CAST(i AS text)`;

    before(async () => {
      partner = await signIn(its.core.url, 'pat@example.com');
      staff = await signIn(its.core.url, 'stan@example.com');
      const accounts = 'accounts (id, name, partner_id, created_at)';
      await insert(accounts, `${text('a')}, ${text('Praxis Übersee ')}, '${its.tenants.partner.id}', 1`, rows);
      const campaigns = 'campaigns (id, name, account_id, created_at)';
      await insert(campaigns, `${text('c')}, ${text('Rückrufe ')}, ${text('a')}, 1`, rows);
      const users = 'users (id, email, name, user_type, partner_id, password_hash, created_at)';
      await insert(users, `${text('u')}, ${text('zoë')}, ${text('Zoë ')}, 'partner', '${its.tenants.partner.id}', '', i`, rows);
      const keys = 'api_keys (id, digest, name, creator_id, creator_partner_id, partner_id, created_at)';
      await insert(
        keys,
        `${text('k')}, ${text('d')}, ${text('Key ')}, 'u1', '${its.tenants.partner.id}', '${its.tenants.partner.id}', i / 2`,
        rows,
      );
    });

    /** Returns all pages of a list, in order. */
    async function pages<Item>(
      path: string,
      read: (json: unknown) => { items: Item[]; nextCursor: string | null },
      as = partner,
    ): Promise<Item[][]> {
      const pagesRead: Item[][] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const answer = await ask('GET', `${its.core.url}${path}${path.includes('?') ? '&' : '?'}cursor=${cursor}`, { cookie: as });
        expect(answer.status, answer.text).to.equal(200);
        const { items, nextCursor } = read(answer.json);
        pagesRead.push(items);
        cursor = nextCursor;
      }
      return pagesRead;
    }
    const readCampaigns = (json: unknown) => {
      const { campaigns, nextCursor } = campaignsSchema.parse(json);
      return { items: campaigns.map(({ id }) => id), nextCursor };
    };
    const readUsers = (json: unknown) => {
      const { users, nextCursor } = usersSchema.parse(json);
      return { items: users.map(({ id }) => id), nextCursor };
    };
    const readAccounts = (json: unknown) => {
      const { accounts, nextCursor } = accountsSchema.parse(json);
      return { items: accounts.map(({ id }) => id), nextCursor };
    };

    it('include each campaign, account and user on exactly one page', async () => {
      for (const [path, read, known] of [
        ['/console/campaigns', readCampaigns, 2],
        ['/console/directory/campaigns', readCampaigns, 2],
        ['/console/accounts', readAccounts, 2],
        ['/console/directory/accounts', readAccounts, 2],
        ['/console/users', readUsers, 5],
      ] as const) {
        const [first = [], ...others] = await pages(path, read);
        expect(first).to.have.length(limits.directoryPage);
        expect(new Set([...first, ...others.flat()]).size).to.equal(rows + known);
        expect([...first, ...others.flat()]).to.have.length(rows + known);
      }
    });

    it('can be searched by name, ignoring case and accents, and by ID', async () => {
      expect(await pages('/console/campaigns?search=RUCKRUFE%20501', readCampaigns)).to.deep.equal([['c501']]);
      expect(await pages('/console/campaigns?search=ubersee%20501', readCampaigns)).to.deep.equal([['c501']]);
      expect(await pages('/console/campaigns?search=c77', readCampaigns)).to.deep.equal([['c77']]);
      expect(await pages('/console/directory/accounts?search=a77', readAccounts)).to.deep.equal([['a77']]);
      expect(await pages(`/console/accounts?search=${encodeURIComponent('ÜBERSEE 9')}`, readAccounts)).to.deep.equal([
        ['a9', ...Array.from({ length: 10 }, (_, n) => `a9${n}`)],
      ]);
      expect(await pages('/console/users?search=zoe%20501', readUsers)).to.deep.equal([['u501']]);
      expect(await pages('/console/users?search=ZOE501', readUsers)).to.deep.equal([['u501']]);
      expect(await pages('/console/users?search=.*', readUsers)).to.deep.equal([[]]);
      expect(await pages('/console/users?search=%5Bz%5D', readUsers)).to.deep.equal([[]]);
      const [first = [], second] = await pages('/console/users?search=zoe', readUsers);
      expect([first.length, second]).to.deep.equal([limits.directoryPage, ['u501', 'u502']]);
      expect(await pages(`/console/users?search=${'o'.repeat(limits.search)}`, readUsers)).to.deep.equal([[]]);
    });

    it("continue after a page's last user even if that user was deleted", async () => {
      const first = await ask('GET', `${its.core.url}/console/users?search=zoe`, { cookie: partner });
      const { users, nextCursor } = usersSchema.parse(first.json);
      const last = users.at(-1)?.id ?? '';
      expect((await ask('DELETE', `${its.core.url}/console/users/${last}`, { cookie: partner })).status).to.equal(204);
      const next = await ask('GET', `${its.core.url}/console/users?search=zoe&cursor=${nextCursor}`, { cookie: partner });
      expect(readUsers(next.json).items).to.deep.equal(['u501', 'u502']);
    });

    it('have each entry on exactly one page, even if entries are renamed or deleted while they are read', async () => {
      const change = async (table: 'campaigns' | 'accounts', id: string, name: string | null) => {
        const entry = its.direct.storage.database.write(table).where({ id });
        await (name === null ? entry.delete() : entry.update({ name }));
      };
      for (const path of ['/console/campaigns', '/console/directory/campaigns']) {
        const read = async (cursor: string) =>
          readCampaigns((await ask('GET', `${its.core.url}${path}${cursor}`, { cookie: partner })).json);
        const first = await read('');
        const last = first.items.at(-1) ?? '';
        const later = (await read(`?cursor=${first.nextCursor}`)).items;
        await insert('campaigns (id, name, account_id, created_at)', `'${last}-gone', 'Z', 'a1', 1`, 1);
        await change('campaigns', `${last}-gone`, null);
        await change('campaigns', last, 'A first name');
        await change('campaigns', first.items[9] ?? '', 'ZZ last name');
        await change('campaigns', later[0] ?? '', 'A first name');
        await change('accounts', 'a500', 'Z');
        expect((await read(`?cursor=${first.nextCursor}`)).items).to.have.members(later);
      }
    });

    it("refuse what isn't a cursor of theirs", async () => {
      const { nextCursor: ofUsers } = readUsers((await ask('GET', `${its.core.url}/console/users`, { cookie: partner })).json);
      const { nextCursor: ofCampaigns } = readCampaigns((await ask('GET', `${its.core.url}/console/campaigns`, { cookie: partner })).json);
      const lists = [
        'accounts',
        'campaigns',
        'users',
        'users/u1/deletion',
        'calls',
        `campaigns/${its.tenants.campaign.id}/calls`,
        'activity',
      ];
      const others = ['calls/summary', 'do-not-call', 'do-not-call?search=%2B49', 'directory/accounts', 'directory/campaigns'];
      for (const list of [...lists, ...others]) {
        const foreign = list.endsWith('campaigns') || list === 'calls/summary' ? ofUsers : ofCampaigns;
        for (const cursor of ['zzz', 'WyJjYWxscyJd', `${foreign}`]) {
          const answer = await ask('GET', `${its.core.url}/console/${list}${list.includes('?') ? '&' : '?'}cursor=${cursor}`, {
            cookie: partner,
          });
          expect([list, cursor, answer.status, readCode(answer)]).to.deep.equal([list, cursor, 400, 'malformed-request']);
        }
      }
    });

    it('show one page of the keys that a deletion affects, and the total number', async () => {
      const pagesRead = await pages('/console/users/u1/deletion', (json) => {
        const { apiKeys, nextCursor, user } = deletionSchema.parse(json);
        expect(user.apiKeys).to.equal(rows);
        return { items: apiKeys.map(({ id }) => id), nextCursor };
      });
      expect(pagesRead.map(({ length }) => length)).to.deep.equal([limits.directoryPage, 2]);
      expect(new Set(pagesRead.flat()).size).to.equal(rows);
      expect(pagesRead[0]?.[0]).to.equal('k502');
    });

    it('count outcomes only for the campaigns on the same page', async () => {
      const { id } = its.tenants.campaign;
      const call = `calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, placed_at, due_at)`;
      await insert(call, `'x', '${id}', '${its.tenants.account.id}', 'x', 'k1', 'queued', ${Date.now()}, ${Date.now()}`, 1);
      const count = async (query: string) => {
        const answer = await ask('GET', `${its.core.url}/console/calls/summary?timeZone=UTC${query}`, { cookie: partner });
        return answer.text.includes(id);
      };
      expect(await count('')).to.equal(true);
      expect(await count('&campaignSearch=reminders')).to.equal(true);
      expect(await count('&campaignSearch=ruckrufe')).to.equal(false);
    });

    it('count the numbers that must not be called up to ten thousand', async () => {
      const { account, partner: owner } = its.tenants;
      const entry = 'do_not_call (id, scope_id, phone, account_id, partner_id, reason, source, created_at)';
      const values = `${text('n')}, '${account.id}', '+4930' || CAST(1000000 + i AS text), '${account.id}', '${owner.id}', 'asked', 'admin', 1`;
      await insert(entry, values, limits.countedMatches + 1);
      const ada = await signIn(its.core.url, 'ada@example.com');
      for (const cookie of [partner, ada]) {
        const count = async (search: string) => {
          const { json } = await ask('GET', `${its.core.url}/console/do-not-call?search=${encodeURIComponent(search)}`, { cookie });
          const { total, totalIsMore } = doNotCallSchema.parse(json);
          return [total, totalIsMore];
        };
        expect([await count(''), await count('+4930'), await count('+49301000')]).to.deep.equal([
          [10_000, true],
          [10_000, true],
          [999, false],
        ]);
      }
    });

    it('show the best tenancy matches first, however many others match', async () => {
      const named = (id: string, name: string) =>
        its.direct.storage.database
          .write('accounts')
          .insert({ id, name, partner_id: its.tenants.partner.id, created_at: instant(1), external_id: null });
      await named('word', 'Zahnarzt Übersee');
      await named('whole', 'übersee');
      await named('start', 'Überseering');
      const answer = await ask('GET', `${its.core.url}/console/tenancies?search=UBERSEE`, { cookie: staff });
      const tenancies = tenanciesSchema.parse(answer.json).tenancies;
      expect(tenancies.slice(0, 2).map(({ id }) => id)).to.deep.equal(['whole', 'start']);
      expect(tenancies).to.have.length(limits.tenancies);
    });
  });
});

describe('a search for calls', () => {
  onEachDatabase((kind) => {
    const count = 30_000;
    /** Recent enough that the core doesn't erase the contacts. */
    const since = Date.now() - 3_600_000;
    const its = openOnce(() => openCore({ kind }));
    let cookie: string;
    let url: string;

    before(async () => {
      const { campaign, account } = its.tenants;
      const contact = kind === 'postgres' ? `lpad(CAST(i AS text), 9, '0')` : `printf('%09d', i)`;
      await its.direct.storage.database.write.raw(
        `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, placed_at, ended_at)
         SELECT ${contact}, '${campaign.id}', '${account.id}', CAST(i AS text), 'k', CASE WHEN i = 7 THEN 'busy' ELSE 'completed' END, '+493012345678',
           CASE WHEN i = 9 THEN 'Zoë' ELSE 'Ada Lovelace' END, ${since} + i, ${since} + i
         FROM ${numbers(kind, count)}`,
      );
      const ofOthers = { ...its.tenants, campaign: its.tenants.otherCampaign, account: its.tenants.otherAccount };
      await insertCalls(its.direct, ofOthers, ['170'], { contact_id: '000000000' });
      cookie = await signIn(its.core.url, 'ada@example.com');
      url = `${its.core.url}/console/campaigns/${campaign.id}/calls`;
    });

    const search = async (query: string) => callsSchema.parse((await ask('GET', url + query, { cookie })).json);
    /** Reads all pages of a search. Each continues where the previous response stopped. */
    async function searchAll(query: string, first = search(query)) {
      const firstPage = await first;
      const calls = [...firstPage.calls];
      for (let { nextCursor } = firstPage; nextCursor !== null; ) {
        const next = await search(`${query}&cursor=${nextCursor}`);
        calls.push(...next.calls);
        ({ nextCursor } = next);
      }
      return calls.map(({ requestId }) => requestId);
    }

    it('counts matches up to ten thousand, whether most calls match or only one', async () => {
      const readTotal = async (query: string) => {
        const { total, totalIsMore } = await search(query);
        return [total, totalIsMore];
      };
      // On a busy machine, a search may take longer than it's given.
      const { search: given } = turnLimits;
      turnLimits.search = 30_000;
      try {
        expect(await readTotal('')).to.deep.equal([10_000, true]);
        expect(await readTotal('?state=completed')).to.deep.equal([10_000, true]);
        expect(await readTotal('?state=busy')).to.deep.equal([1, false]);
        expect(await readTotal('?state=queued')).to.deep.equal([0, false]);
      } finally {
        turnLimits.search = given;
      }
    });

    it('finds the oldest of many calls by name and state', async () => {
      expect(await searchAll('?search=zoe')).to.deep.equal(['9']);
      expect(await searchAll('?state=busy')).to.deep.equal(['7']);
    });

    it("shows the call with exactly the request ID that is searched for on the first page, however old it is, only once, and no other account's", async () => {
      expect((await search('?search=170')).calls.map(({ requestId }) => requestId).at(-1)).to.equal('170');
      const all = await searchAll('?search=170');
      expect(all).to.include('1170').and.to.have.lengthOf(new Set(all).size);
      expect(all.filter((id) => id === '170')).to.have.lengthOf(1);
      expect((await search('?search=170&state=busy')).calls).to.deep.equal([]);
    });

    it('shows the ended calls of exactly the number that is searched for on the first page, however old they are, and only once', async () => {
      const change = (id: number, row: object) =>
        its.direct.storage.database
          .write('calls')
          .where({ request_id: String(id) })
          .update(row);
      const dialed = { phone: '+49401234567', handoff: 'taken', first_attempt_at: since };
      for (const id of [11, 12]) await change(id, dialed);
      await change(13, { phone: dialed.phone });
      const { search: given } = turnLimits;
      // Each response has what was found in one stretch.
      turnLimits.search = 0;
      try {
        const first = await search('?search=%2B49 40 1234567');
        expect(first.calls.map(({ requestId }) => requestId)).to.deep.equal(['12', '11']);
        // A call that's dialed in the meantime is on a later page.
        await change(13, { ...dialed, first_attempt_at: Date.now() });
        expect(await searchAll('?search=%2B49 40 1234567', Promise.resolve(first))).to.deep.equal(['12', '11', '13']);
        expect((await search('?search=%2B49 40 1234567&state=busy')).calls).to.deep.equal([]);
      } finally {
        turnLimits.search = given;
      }
    });

    it('returns the matches found so far when the same session starts another search, and can be continued from there', async () => {
      const older = search('?search=zoe');
      const newer = search('?search=zo');
      const stopped = (await Promise.all([older, newer])).find(({ searchedBackTo }) => searchedBackTo !== undefined);
      expect(Date.parse(stopped?.searchedBackTo ?? '')).to.equal(
        since + Number(timeCursors('calls').read(stopped?.nextCursor ?? null)?.id),
      );
      expect(await searchAll('?search=zoe', older)).to.deep.equal(['9']);
    });
  });
});
