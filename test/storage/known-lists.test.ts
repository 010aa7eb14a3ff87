import { expect } from 'chai';
import { createApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { forgetDoNotCall } from '../../core/domain/calls/contacts.ts';
import type { KeyedRequest } from '../../core/domain/ports.ts';
import { addNumbers } from '../../core/domain/protection/do-not-call.ts';
import { callStore } from '../../core/storage/calls/place-and-cancel.ts';
import { knownLists } from '../../core/storage/protection/known.ts';
import { onEachDatabase } from '../support/databases.ts';
import { openOnce } from '../support/suites.ts';
import { openDirect, somePhone, tenantsOnce, toCaller } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** The figures in the documentation come from `DO_NOT_CALL_RACES=3000`. */
const races = Number(process.env['DO_NOT_CALL_RACES'] ?? 20);

describe('the do-not-call lists that a process remembers', () => {
  onEachDatabase((kind) => {
    const { direct: here, tenants } = tenantsOnce(kind);
    const there = openOnce(() => openDirect(here.database));

    const list = (...phones: string[]) => {
      return addNumbers(there.ports, operator, { accountId: tenants.account.id, reason: 'asked', phones, timeZone: 'UTC' });
    };
    const currentVersion = async () => {
      const partner = await here.storage.database.read('partners').where({ id: tenants.partner.id }).first('do_not_call_version');
      return partner?.do_not_call_version ?? null;
    };

    /** Creates a store that places calls with one key, and with the version of the lists that it's told to know. */
    async function openPlacing() {
      const caller = { viewer: { ...tenants.users.account, tenancy: null }, actor: operator.actor };
      const { keyValue } = await createApiKey(here.ports, caller, { name: 'K', expiration: { kind: 'none' }, timeZone: 'UTC' });
      const known: { version: number | null } = { version: null };
      const ignore = () => undefined;
      const observers = { onBatch: ignore, onPlaced: ignore, onAddressRefused: ignore };
      const calls = callStore(here.storage.database, { note: ignore }, { unlistedVersion: () => known.version }, observers);
      const nothing = { name: null, timeZone: null, variables: null, notBefore: null, notAfter: null };
      const place = async (phone: string) => {
        const request: KeyedRequest = { ...toCaller(toDigest(keyValue)), campaignId: tenants.campaign.id, at: here.ports.clock.now() };
        const id = here.ports.randomness.id();
        return (await calls.place(request, { contactId: id, requestId: id, phone, ...nothing })).kind;
      };
      return { known, place };
    }

    it('never let through a call to a number that was already listed, even if it was listed right after they were refreshed', async () => {
      const { known, place } = await openPlacing();
      await list(somePhone());
      for (let n = 0; n < races; n++) {
        const phone = somePhone();
        known.version = await currentVersion();
        const listing = list(phone);
        const placing = place(phone);
        await listing;
        expect(await place(phone)).to.equal('do-not-call');
        await placing;
      }
    });

    it('cover each added number, even if there are too many to remember exactly, or the record of additions was erased', async () => {
      const lists = knownLists(here.storage.database);
      const listed: string[] = [];
      const follow = async (count: number) => {
        const added = Array.from({ length: count }, (_, n) => `+4930${10_000_000 + listed.length + n}`);
        await list(...added);
        listed.push(...added);
        const version = await currentVersion();
        const others = Array.from({ length: 1_000 }, (_, n) => `+4931${10_000_000 + n}`);
        // The lists are read in the background, and are approximate: a few unlisted numbers may appear to be listed.
        await until(() => others.filter((phone) => lists.unlistedVersion(tenants.campaign.id, phone) === version).length > 900);
        expect(listed.filter((phone) => lists.unlistedVersion(tenants.campaign.id, phone) !== null)).to.deep.equal([]);
      };
      for (const count of [1, 10, 5_000, 3]) await follow(count);
      await forgetDoNotCall(here.ports, operator.actor, '+4930999');
      await follow(7);
      await lists.close();
    });
  });
});
