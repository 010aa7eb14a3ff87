import { expect } from 'chai';
import { notifyOfExpiry } from '../../../desktop/main/expiry-notices.ts';
import { SettingsFile } from '../../../desktop/main/settings.ts';
import { freshDirectory } from '../../support/databases.ts';
import { keyView } from '../../support/key-view.ts';

/** At noon in the computer's zone, because the notification appears once a day there. */
const now = new Date(2026, 10, 21, 12).getTime();
const day = 86_400_000;

describe('the notification before keys expire', () => {
  const toKey = (name: string, daysLeft: number | null) => {
    const expiresAt = daysLeft === null ? null : new Date(now + daysLeft * day).toISOString();
    return keyView({ id: `id-${name}`, name, expiresAt, expiryTimeZone: Intl.DateTimeFormat().resolvedOptions().timeZone });
  };
  const shown: { title: string; body: string }[] = [];
  let settings: SettingsFile;
  const check = (at: number, ...apiKeys: ReturnType<typeof toKey>[]) => {
    const listKeys = async () => ({ server: 'https://calls.example.com', apiKeys });
    return notifyOfExpiry({ settings, listKeys, show: (notice) => shown.push(notice) }, at);
  };
  beforeEach(() => {
    shown.length = 0;
    settings = new SettingsFile(freshDirectory());
  });

  it('names the keys that expire within a week, those that expire first at the start', async () => {
    await check(now, toKey('Later', 6), toKey('Never', null), toKey('Far', 8), toKey('Over', -1), toKey('Soon', 1));
    const body = 'Soon: 22 Nov 2026\nLater: 27 Nov 2026\ncalls.example.com';
    expect(shown).to.deep.equal([{ title: '2 API keys expire soon', body, server: 'https://calls.example.com' }]);
  });

  it("uses the computer's own zone if only the server knows a key's zone", async () => {
    await check(now, { ...toKey('Soon', 1), expiryTimeZone: 'Mars/Olympus_Mons' });
    expect(shown[0]?.body).to.equal('Soon: 22 Nov 2026\ncalls.example.com');
  });

  it('appears once a day for each key, also after a restart', async () => {
    await check(now, toKey('Soon', 3));
    await check(now + 3_600_000, toKey('Soon', 3), toKey('Another', 4));
    await check(now + 7_200_000, toKey('Soon', 3), toKey('Another', 4));
    await check(now + day, toKey('Soon', 3));
    expect(shown.map(({ body }) => body.split(':')[0])).to.deep.equal(['Soon', 'Another', 'Soon']);
  });

  it('can be turned off', async () => {
    await settings.change({ notifiesExpiry: false });
    await check(now, toKey('Soon', 3));
    expect(shown).to.deep.equal([]);
  });
});
