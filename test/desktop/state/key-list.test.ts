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
import { keyView as key } from '../../support/key-view.ts';

const now = DateTime.fromISO('2026-11-21T12:00:00Z', { zone: 'utc' });
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

describe('the key filters', () => {
  const [before, after] = ['2026-08-23T12:00:00.000Z', '2026-08-23T12:00:00.001Z'];
  const cases: readonly (readonly [KeyFilter, what: string, changes: Partial<ApiKeyView>, isFound: boolean])[] = [
    ['expiring', 'a key that expires in 30 days', { expiresAt: '2026-12-21T12:00:00.000Z' }, true],
    ['expiring', 'a key that expires later', { expiresAt: '2026-12-21T12:00:00.001Z' }, false],
    ['expiring', 'an expired key', { expiresAt: '2026-11-21T11:59:59.999Z' }, false],
    ['expiring', 'a key that has expired on the server', { expiresAt: '2026-12-01T00:00:00.000Z', expired: true }, false],
    ['expiring', 'a key without expiration', {}, false],
    ['unused', 'a key last used 90 days ago', { createdAt: '2026-01-01T00:00:00.000Z', lastUsedAt: before }, true],
    ['unused', 'a key used since', { createdAt: '2026-01-01T00:00:00.000Z', lastUsedAt: after }, false],
    ['unused', 'a key created 90 days ago that was never used', { createdAt: before }, true],
    ['unused', 'a newer key that was never used', { createdAt: after }, false],
    ['expired', 'an expired key', { expiresAt: '2026-11-21T11:59:59.999Z' }, true],
    ['expired', 'a key that still works', { expiresAt: '2027-11-21T12:00:00.000Z' }, false],
    ['no-expiration', 'a key without expiration', {}, true],
    ['no-expiration', 'a key that expires', { expiresAt: '2027-11-21T12:00:00.000Z' }, false],
    ['never-used', 'a key that was never used', {}, true],
    ['never-used', 'a key that was used', { lastUsedAt: '2026-11-20T00:00:00.000Z' }, false],
  ];
  for (const [filter, what, changes, isFound] of cases) {
    it(`${isFound ? 'find' : "don't find"} ${what} for "${filter}"`, () => {
      expect(filterKeys([key(changes)], '', filter, now)).to.have.length(isFound ? 1 : 0);
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

describe('the list of keys', () => {
  it('shows the key that expires next first in its banner', () => {
    const later = key({ name: 'later', expiresAt: '2026-12-10T00:00:00.000Z' });
    const sooner = key({ name: 'sooner', expiresAt: '2026-11-25T00:00:00.000Z' });
    expect(names(keysExpiringSoon([later, key(), sooner], now))).to.deep.equal(['sooner', 'later']);
  });

  it("takes a name to be taken if another key's name differs only in case, accents or surrounding spaces", () => {
    const keys = [key({ name: 'Zahnärzte' })];
    expect(isNameTaken(keys, ' zahnarzte ')).to.equal(true);
    expect(isNameTaken(keys, 'Zahnarzt')).to.equal(false);
    expect(isNameTaken(keys, ' ')).to.equal(false);
  });

  it('shows a key as expired if the core says so, whatever the local clock says', () => {
    const isExpired = (expired: boolean) => hasExpired(key({ expiresAt: '2026-11-22T00:00:00.000Z', expired }), now);
    expect([isExpired(true), isExpired(false)]).to.deep.equal([true, false]);
  });

  it('labels keys with their names, and with the end of the ID only if several have the same name', () => {
    const keys = [key({ id: 'k1', name: 'CRM' }), key({ id: 'k3', name: 'Website' })];
    expect([...labelKeys([{ id: 'k4', name: 'CRM' }, { id: 'k3', name: 'Website' }, ...keys])]).to.deep.equal([
      ['k4', 'CRM …k4'],
      ['k3', 'Website'],
      ['k1', 'CRM …k1'],
    ]);
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

describe('a page of a list', () => {
  for (const [what, rows, asked, page] of [
    ['counts rows from one', 25, 1, { index: 1, count: 3, first: 11, last: 20 }],
    ['is the last page if the list has become shorter', 25, 7, { index: 2, count: 3, first: 21, last: 25 }],
    ['is the first page for a negative index', 25, -1, { index: 0, count: 3, first: 1, last: 10 }],
    ['is a single empty page for an empty list', 0, 0, { index: 0, count: 1, first: 0, last: 0 }],
    ['is full if the rows fill it exactly, without an empty page after it', 20, 1, { index: 1, count: 2, first: 11, last: 20 }],
  ] as const) {
    it(what, () => {
      const all = Array.from({ length: rows }, (_, index) => index + 1);
      const items = all.filter((row) => page.first <= row && row <= page.last);
      expect(paginate(all, asked, 10)).to.deep.equal({ ...page, items });
    });
  }
});
