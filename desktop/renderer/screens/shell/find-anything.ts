import type { SessionView } from '#contract/console/session.ts';
import { screensFor } from '../../../screens.ts';
import type { Option } from '../../components/forms/picker.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { ownZone } from '../../state/clock.ts';

/** An option that opens an address of the console. */
export type Destination = Option & { address: string };

/** The maximum number of results of each kind, so that the list stays easy to read. */
const shown = 8;
const idFormat = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/**
 * Finds users and campaigns by name or email, and keys, users and campaigns by ID. Omits anything that can't be found or that the viewer
 * can't see.
 */
export async function findAnything(session: SessionView, search: string): Promise<{ ok: true; value: Destination[] }> {
  const isId = idFormat.test(search);
  const seesUsers = screensFor(session.viewer).some(({ name }) => name === 'users');
  const results = await Promise.all([
    isId ? findKey(search) : [],
    seesUsers ? (isId ? findUser(search) : findUsers(search)) : [],
    findCampaigns(search),
  ]);
  return { ok: true, value: results.flat() };
}

async function findKey(id: string): Promise<Destination[]> {
  const result = await window.callkey.request('showApiKey', { id, timeZone: ownZone.peek() });
  if (!result.ok) return [];
  const { name } = result.value.apiKey;
  return [{ id: `key-of-id:${id}`, name, caption: 'API key', address: formatAddress('api-keys', { open: id }) }];
}

async function findUser(id: string): Promise<Destination[]> {
  const result = await window.callkey.request('previewDeletion', { id, cursor: null });
  return result.ok ? [toUser(result.value.user)] : [];
}

async function findUsers(search: string): Promise<Destination[]> {
  const result = await window.callkey.request('listUsers', { search, cursor: null });
  return result.ok ? result.value.users.slice(0, shown).map(toUser) : [];
}

function toUser({ id, name, email }: { id: string; name: string; email: string }): Destination {
  return { id: `user:${id}`, name, caption: `User · ${email}`, address: formatAddress('users', { open: id }) };
}

async function findCampaigns(search: string): Promise<Destination[]> {
  const result = await window.callkey.request('listCampaigns', { search, cursor: null });
  if (!result.ok) return [];
  return result.value.campaigns.slice(0, shown).map(({ id, name, account }) => ({
    id: `campaign:${id}`,
    name,
    caption: `Campaign · ${account.name}`,
    address: formatAddress('calls', { campaign: id }),
  }));
}
