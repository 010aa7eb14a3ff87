import { expect } from 'chai';
import { isKeyValue } from '#contract/key-value.ts';
import {
  createApiKey,
  identifyApiKey,
  listApiKeys,
  previewRevocation,
  revokeApiKey,
  revokeApiKeys,
  showApiKey,
  toDigest,
} from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import type { ApiKey, AuditEvent, KeyUsage, Viewer } from '../../core/domain/model.ts';
import type { ApiKeyStore } from '../../core/domain/ports.ts';
import { at } from '../support/clock.ts';
import { fakePorts, readProblem, viewers } from '../support/ports.ts';

const { account, staff } = viewers;
const actor = { who: account, address: '192.0.2.1' };
const noSuchKey = "not-found: This API key doesn't exist, or you don't have access to it.";
const createKey = (id: string): ApiKey => ({
  ...{
    id,
    name: `Key ${id}`,
    creator: { ...account, isStaff: false, isDisabled: false, lastSignInAt: null },
    owningScope: { accountId: 'a1', partnerId: 'p1' },
    eventScope: { accountId: null, partnerId: 'p2' },
  },
  ...{ createdAt: at('2026-11-01T00:00:00Z'), lastUsedAt: null, expiresAt: null, expiryTimeZone: null, timeZone: 'UTC', limits: null },
});

type Options = { there?: string[]; revocable?: string[]; usage?: KeyUsage[] };
/** Creates a fake store with these keys, which records its calls. */
function createKeys({ there = ['k1', 'k2'], revocable = there, usage = [] }: Options = {}) {
  const created: [ApiKey, string][] = [];
  const events: AuditEvent[] = [];
  const asked: unknown[] = [];
  const find = (ids: readonly string[]) => there.filter((id) => ids.includes(id)).map(createKey);
  const apiKeys: Partial<ApiKeyStore> = {
    create: async (key, digest, maxActive, event) => {
      if (created.length >= maxActive) return false;
      created.push([key, digest]);
      events.push(event);
      return true;
    },
    list: async (visibility, limit) => {
      asked.push(visibility, limit);
      return { apiKeys: [], total: 0 };
    },
    find: async (_, id) => find([id])[0] ?? null,
    findAll: async (_, ids) => {
      asked.push(ids);
      return find(ids);
    },
    findByDigest: async (visibility, digest) => {
      asked.push(visibility, digest);
      return createKey('k1');
    },
    details: async (_, id) =>
      find([id]).length > 0
        ? {
            apiKey: createKey(id),
            createdIn: { kind: 'partner', id: 'p1', name: 'P' },
            reach: { kind: 'partner', id: 'p1', name: 'P' },
            lastUsedAddress: null,
          }
        : null,
    usage: async (_, since) => {
      asked.push(new Date(since).toISOString());
      return usage;
    },
    countQueuedCalls: async () => 7,
    addresses: async () => [{ address: '192.0.2.1', usedAt: at('2026-11-21T08:00:00Z') }],
    revoke: async (ids, { cancelQueuedCalls }, revocations) => {
      asked.push(cancelQueuedCalls);
      events.push(...revocations);
      return ids.filter((id) => revocable.includes(id));
    },
  };
  const activity = {
    listOfApiKey: async (_: unknown, _id: string, limit: number) => {
      asked.push(limit);
      return [];
    },
  };
  return { ports: fakePorts({ stores: { apiKeys, activity } }), created, events, asked };
}

describe('a new API key', () => {
  const create = (viewer: Viewer, expiration: Parameters<typeof createApiKey>[2]['expiration'], keys = createKeys()) =>
    createApiKey(keys.ports, { viewer, actor }, { name: 'CRM', expiration, timeZone: 'Europe/Berlin' });

  it("is stored as a digest in its creator's scope, and records an event", async () => {
    const keys = createKeys();
    const { apiKey, keyValue } = await create(account, { kind: 'none' }, keys);
    const owningScope = { accountId: 'a1', partnerId: 'p1' };
    expect(apiKey).to.deep.equal({
      ...{
        id: 'id1',
        name: 'CRM',
        creator: {
          id: 'ada',
          name: 'Ada Account',
          email: 'ada@example.com',
          isStaff: false,
          isDisabled: false,
          lastSignInAt: fakePorts().clock.now(),
        },
        owningScope,
        eventScope: owningScope,
      },
      ...{
        createdAt: keys.ports.clock.now(),
        lastUsedAt: null,
        expiresAt: null,
        expiryTimeZone: null,
        timeZone: 'Europe/Berlin',
        limits: null,
      },
    });
    expect(isKeyValue(keyValue)).to.equal(true);
    expect(keys.created).to.deep.equal([[apiKey, toDigest(keyValue)]]);
    expect(keys.events[0]).to.deep.include({
      action: 'api-key.created',
      subject: { kind: 'api-key', id: 'id1', name: 'CRM' },
      owningScope,
    });
  });

  it("expires at the end of the chosen day in the creator's time zone", async () => {
    const { apiKey } = await create(account, { kind: 'custom', date: '2026-11-22' });
    expect([apiKey.expiresAt, apiKey.expiryTimeZone]).to.deep.equal([at('2026-11-22T22:59:59.999Z'), 'Europe/Berlin']);
  });

  for (const date of ['2026-11-21', '2031-11-21']) {
    it(`can't expire on ${date}`, async () => {
      const refusal = 'invalid at expiration.date: Must be a date from 2026-11-22 to 2031-11-20.';
      expect(await readProblem(create(account, { kind: 'custom', date }))).to.equal(refusal);
    });
  }

  it("can't be created by staff without a selected tenancy", async () => {
    const refusal = 'forbidden: Select an account or partner first. The key will have access only to that account or partner.';
    expect(await readProblem(create(staff, { kind: 'none' }))).to.equal(refusal);
  });

  it('has a SHA-256 digest', () => {
    expect(toDigest('abc')).to.equal('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});

describe('API keys', () => {
  it('are listed up to 500', async () => {
    const { ports, asked } = createKeys();
    await listApiKeys(ports, { kind: 'partner', partnerId: 'p1' });
    expect(asked).to.deep.equal([{ kind: 'partner', partnerId: 'p1' }, 500]);
  });

  describe('of all users', () => {
    /** Two thousand keys, every tenth of them for a CRM, and a record of each read: its number of keys and its cursor. */
    const all = Array.from({ length: 2_000 }, (_, n) => ({ ...createKey(`k${n}`), name: n % 10 === 0 ? `Crème CRM ${n}` : `Key ${n}` }));
    const listed = async (search: string, limit: number | null, there = all) => {
      const asked: unknown[] = [];
      const apiKeys = {
        list: async (...given: unknown[]) => {
          asked.push(given);
          return { apiKeys: all.slice(0, 1), total: 2_000 };
        },
        page: async (visibility: unknown, cursor: string | null, count: number) => {
          asked.push([visibility, cursor, count]);
          const from = cursor === null ? 0 : there.findIndex(({ id }) => id === cursor) + 1;
          return there.slice(from, from + count);
        },
      };
      return { ...(await listApiKeys(fakePorts({ stores: { apiKeys } }), { kind: 'all' }, search, limit)), asked };
    };

    it('are read in batches of a thousand if all keys are requested', async () => {
      const { apiKeys, total, asked } = await listed('', null);
      expect([apiKeys, total]).to.deep.equal([all, 2_000]);
      expect(asked).to.deep.equal([null, 'k999', 'k1999'].map((cursor) => [{ kind: 'all' }, cursor, 1_000]));
    });

    it('are read until a batch has fewer than a thousand', async () => {
      const { total, asked } = await listed('', null, all.slice(0, 1_999));
      expect({ total, asked: asked.length }).to.deep.equal({ total: 1_999, asked: 2 });
    });

    it('are found by part of their name, ignoring case and accents, and counted beyond the limit', async () => {
      const { apiKeys, total } = await listed('creme crm', 5);
      expect([apiKeys.map(({ id }) => id), total]).to.deep.equal([['k0', 'k10', 'k20', 'k30', 'k40'], 200]);
      expect(await listed('creme crm', null))
        .to.have.property('apiKeys')
        .with.length(200);
      expect(await listed('nothing', 5)).to.deep.include({ apiKeys: [], total: 0 });
    });

    it('are listed newest first without a search', async () => {
      const { apiKeys, total, asked } = await listed('', 1);
      expect([apiKeys.length, total, asked]).to.deep.equal([1, 2_000, [[{ kind: 'all' }, 1]]]);
    });
  });

  it("are found by their digest within the viewer's scope", async () => {
    const { ports, asked } = createKeys();
    expect((await identifyApiKey(ports, account, 'digest'))?.id).to.equal('k1');
    expect(asked).to.deep.equal([{ kind: 'own', userId: 'ada' }, 'digest']);
  });

  it('are shown with their daily use in a time zone for thirty days, and with fifty events', async () => {
    const counted = (instant: string, placed: number, cancelled: number) => ({ quarterAt: at(instant), placed, cancelled, refused: 0 });
    const usage = [
      counted('2026-11-20T23:00:00Z', 1, 2),
      counted('2026-11-21T08:00:00Z', 10, 20),
      counted('2026-11-20T22:45:00Z', 100, 200),
    ];
    const { ports, asked } = createKeys({ usage });
    const shown = await showApiKey(ports, account, 'k1', 'Europe/Berlin');
    expect([shown.apiKey.id, shown.usage.length]).to.deep.equal(['k1', 30]);
    expect([shown.usage[0], ...shown.usage.slice(-2)]).to.deep.equal([
      { day: '2026-10-23', placed: 0, cancelled: 0, refused: 0 },
      { day: '2026-11-20', placed: 100, cancelled: 200, refused: 0 },
      { day: '2026-11-21', placed: 11, cancelled: 22, refused: 0 },
    ]);
    expect(asked).to.have.members(['2026-10-22T22:00:00.000Z', 50]);
  });

  it('are shown with the effects of revoking them: queued calls, and what was placed in the last 24 hours and from where', async () => {
    const usage = [{ quarterAt: at('2026-11-21T08:00:00Z'), placed: 100, cancelled: 0, refused: 0 }];
    const { ports } = createKeys({ usage });
    expect(await previewRevocation(ports, account, 'k1')).to.deep.equal({
      ...{ apiKey: createKey('k1'), queuedCalls: 7, placed: 100 },
      addresses: [{ address: '192.0.2.1', usedAt: at('2026-11-21T08:00:00Z') }],
    });
  });

  it('are revoked with one event each, and on request their queued calls are cancelled', async () => {
    const { ports, events, asked } = createKeys();
    await revokeApiKey(ports, { viewer: account, actor }, 'k1', true);
    expect(asked).to.deep.equal([['k1'], true]);
    const { eventScope } = createKey('k1');
    expect(events.map(({ action, subject, owningScope }) => [action, subject, owningScope])).to.deep.equal([
      ['api-key.revoked', { kind: 'api-key', id: 'k1', name: 'Key k1' }, eventScope],
    ]);
  });

  it('are returned when an operator revokes them', async () => {
    expect(await revokeApiKey(createKeys().ports, operator, 'k1', false)).to.deep.equal(createKey('k1'));
  });

  it('are revoked in bulk, and unknown and already revoked keys are reported as gone', async () => {
    const { ports, asked } = createKeys({ there: ['k1', 'k2', 'k3'], revocable: ['k1', 'k3'] });
    const ids = ['k3', 'k1', 'k3', 'k2', 'k9'];
    const result = await revokeApiKeys(ports, { viewer: account, actor }, { ids, cancelQueuedCalls: false });
    expect(result).to.deep.equal({ revoked: ['k3', 'k1'], gone: ['k2', 'k9'] });
    expect(asked).to.deep.equal([['k3', 'k1', 'k2', 'k9'], false]);
  });

  it("aren't found outside the viewer's scope", async () => {
    const { ports } = createKeys();
    expect(await readProblem(showApiKey(ports, account, 'x', 'UTC'))).to.equal(noSuchKey);
    expect(await readProblem(previewRevocation(ports, account, 'x'))).to.equal(noSuchKey);
    expect(await readProblem(revokeApiKey(ports, { viewer: account, actor }, 'x', false))).to.equal(noSuchKey);
  });

  it("aren't found if someone else revoked them first", async () => {
    const { ports } = createKeys({ revocable: [] });
    expect(await readProblem(revokeApiKey(ports, { viewer: account, actor }, 'k1', false))).to.equal(noSuchKey);
  });
});
