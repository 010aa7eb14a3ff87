import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import {
  filterKeys,
  hasExpired,
  isNameTaken,
  type KeyFilter,
  keyCsvRow,
  keysExpiringSoon,
  labelKeys,
  listOwners,
  paginate,
} from '../../../desktop/renderer/state/api-keys.ts';

const now = DateTime.fromISO('2026-11-21T12:00:00Z');
const key = (changes: Partial<ApiKeyView> = {}): ApiKeyView => ({
  id: 'k',
  name: 'Key',
  createdAt: '2026-11-01T00:00:00.000Z',
  lastUsedAt: null,
  expiresAt: null,
  expiryTimeZone: null,
  timeZone: 'UTC',
  expired: false,
  addresses: null,
  callsPerDay: null,
  limitsVersion: null,
  ...changes,
});
const names = (keys: readonly ApiKeyView[]) => keys.map(({ name }) => name);

describe('the search in the key list', () => {
  const keys = [key({ name: 'Zahnärzte-Portal' }), key({ name: 'CRM sync' })];

  it('ignores case, accents and surrounding spaces', () => {
    expect(names(filterKeys(keys, ' ZAHNARZTE ', 'all', now))).to.deep.equal(['Zahnärzte-Portal']);
  });

  it('keeps the order of the keys, and finds all of them if no text is entered', () => {
    expect(names(filterKeys(keys, '', 'all', now))).to.deep.equal(['Zahnärzte-Portal', 'CRM sync']);
  });
});

describe('the filter for expiring keys', () => {
  const passes = (changes: Partial<ApiKeyView>) => filterKeys([key(changes)], '', 'expiring', now).length === 1;

  it('includes a key that expires in exactly 30 days, but not a key that expires later', () => {
    expect(passes({ expiresAt: '2026-12-21T12:00:00.000Z' })).to.equal(true);
    expect(passes({ expiresAt: '2026-12-21T12:00:00.001Z' })).to.equal(false);
  });

  it('excludes expired keys and keys without expiration', () => {
    expect(passes({ expiresAt: '2026-11-21T11:59:59.999Z' })).to.equal(false);
    expect(passes({ expiresAt: '2026-12-01T00:00:00.000Z', expired: true })).to.equal(false);
    expect(passes({ expiresAt: null })).to.equal(false);
  });
});

describe('the filter for unused keys', () => {
  const passes = (changes: Partial<ApiKeyView>) => filterKeys([key(changes)], '', 'unused', now).length === 1;

  it('includes a key last used 90 days ago', () => {
    expect(passes({ createdAt: '2026-01-01T00:00:00.000Z', lastUsedAt: '2026-08-23T12:00:00.000Z' })).to.equal(true);
    expect(passes({ createdAt: '2026-01-01T00:00:00.000Z', lastUsedAt: '2026-08-23T12:00:00.001Z' })).to.equal(false);
  });

  it('counts from the creation of a key that was never used', () => {
    expect(passes({ createdAt: '2026-08-23T12:00:00.000Z' })).to.equal(true);
    expect(passes({ createdAt: '2026-08-23T12:00:00.001Z' })).to.equal(false);
  });
});

describe('the key filters', () => {
  const keys = [
    key({ name: 'expired', expiresAt: '2026-11-21T11:59:59.999Z', lastUsedAt: '2026-11-20T00:00:00.000Z' }),
    key({ name: 'used', lastUsedAt: '2026-11-20T00:00:00.000Z' }),
    key({ name: 'ends', expiresAt: '2027-11-21T12:00:00.000Z' }),
  ];
  const expected: readonly (readonly [KeyFilter, string[]])[] = [
    ['expired', ['expired']],
    ['no-expiration', ['used']],
    ['never-used', ['ends']],
  ];
  for (const [filter, matches] of expected) {
    it(`find the keys for "${filter}"`, () => {
      expect(names(filterKeys(keys, '', filter, now))).to.deep.equal(matches);
    });
  }

  it('find the keys of one owner, and show the viewer as "You", whatever their name', () => {
    const owned = [
      key({ name: 'mine', owner: { isYou: true, name: 'Ada' } }),
      key({ name: 'of another Ada', owner: { isYou: false, name: 'Ada' } }),
    ];
    expect([...listOwners(owned).values()]).to.deep.equal(['You', 'Ada']);
    expect(names(filterKeys(owned, '', 'all', now, 'You'))).to.deep.equal(['mine']);
    expect(names(filterKeys(owned, '', 'all', now, 'Ada'))).to.deep.equal(['of another Ada']);
  });

  it('distinguish two owners with the same name by email address', () => {
    const owned = ['ada@blue.example', 'ada@red.example'].map((email) => key({ name: email, owner: { isYou: false, name: 'Ada', email } }));
    expect([...listOwners(owned).values()]).to.deep.equal(['Ada (ada@blue.example)', 'Ada (ada@red.example)']);
    expect(names(filterKeys(owned, '', 'all', now, 'ada@red.example'))).to.deep.equal(['ada@red.example']);
  });
});

describe('the banner about keys that expire soon', () => {
  it('shows the key that expires next first', () => {
    const later = key({ name: 'later', expiresAt: '2026-12-10T00:00:00.000Z' });
    const sooner = key({ name: 'sooner', expiresAt: '2026-11-25T00:00:00.000Z' });
    expect(names(keysExpiringSoon([later, key(), sooner], now))).to.deep.equal(['sooner', 'later']);
  });
});

describe('a key name', () => {
  it("counts as taken if another key's name differs only in case, accents or surrounding spaces", () => {
    const keys = [key({ name: 'Zahnärzte' })];
    expect(isNameTaken(keys, ' zahnarzte ')).to.equal(true);
    expect(isNameTaken(keys, 'Zahnarzt')).to.equal(false);
    expect(isNameTaken(keys, ' ')).to.equal(false);
  });
});

describe('a key in an exported file', () => {
  it('has the same status and expiration text as the list', () => {
    const row = ['k', 'Key', '', '', '2026-11-01T00:00:00.000Z', 'Never', 'No expiration', '', ''];
    expect(keyCsvRow(key(), now, 'UTC')).to.deep.equal(row);
  });

  it('has times in the zone of the list, so that they fall on the same day', () => {
    const used = key({
      createdAt: '2026-10-31T23:30:00.000Z',
      lastUsedAt: '2026-07-01T22:30:00.000Z',
      expiresAt: '2027-01-31T22:59:59.999Z',
    });
    expect(keyCsvRow(used, now, 'Europe/Berlin').slice(4, 7)).to.deep.equal([
      '2026-11-01T00:30:00.000+01:00',
      '2026-07-02T00:30:00.000+02:00',
      '2027-01-31T23:59:59.999+01:00',
    ]);
  });
});

describe('a listed key', () => {
  it('expires a millisecond after its expiration time, not at that time', () => {
    expect(hasExpired(key({ expiresAt: '2026-11-21T12:00:00.000Z' }), now)).to.equal(false);
    expect(hasExpired(key({ expiresAt: '2026-11-21T11:59:59.999Z' }), now)).to.equal(true);
  });

  it('is expired if the core says so, whatever the local clock says', () => {
    expect(hasExpired(key({ expiresAt: '2026-11-22T00:00:00.000Z', expired: true }), now)).to.equal(true);
  });
});

describe('a page of a list', () => {
  const all = Array.from({ length: 25 }, (_, index) => index + 1);

  it('counts rows from one', () => {
    const { items, ...page } = paginate(all, 1, 10);
    expect(page).to.deep.equal({ index: 1, count: 3, first: 11, last: 20 });
    expect(items).to.deep.equal([11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  });

  it('is the last page if the list has become shorter', () => {
    const { items, ...page } = paginate(all, 7, 10);
    expect(page).to.deep.equal({ index: 2, count: 3, first: 21, last: 25 });
    expect(items).to.deep.equal([21, 22, 23, 24, 25]);
  });

  it('is the first page for a negative index', () => {
    expect(paginate(all, -1, 10).index).to.equal(0);
  });

  it('is a single empty page for an empty list', () => {
    expect(paginate([], 0, 10)).to.deep.equal({ items: [], index: 0, count: 1, first: 0, last: 0 });
  });

  it('is full if the rows fill it exactly, without an empty page after it', () => {
    expect(paginate(all.slice(0, 20), 1, 10)).to.include({ count: 2, first: 11, last: 20 });
  });
});

describe('the labels of keys', () => {
  it('are their names, with the end of the ID only if several keys have the same name', () => {
    const keys = [key({ id: 'k1', name: 'CRM' }), key({ id: 'k3', name: 'Website' })];
    expect([...labelKeys([{ id: 'k4', name: 'CRM' }, { id: 'k3', name: 'Website' }, ...keys])]).to.deep.equal([
      ['k4', 'CRM …k4'],
      ['k3', 'Website'],
      ['k1', 'CRM …k1'],
    ]);
  });
});
