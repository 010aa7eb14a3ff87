import { useMemo, useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { foldText } from '#contract/text/text.ts';
import type { Command, Result } from '../../../ipc.ts';
import { screensFor, showCommand } from '../../../screens.ts';
import { isLink } from '../../../server-address.ts';
import { findCustomers, type Option, Picker } from '../../components/choose.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { useFound, useList } from '../../components/list.tsx';
import { formatAddress, openLink } from '../../state/addresses.ts';
import { warn } from '../../state/announcement.ts';
import { labelKeys } from '../../state/api-keys.ts';
import { ownZone } from '../../state/clock.ts';
import { commandsFor } from '../../state/commands.ts';
import { describeFailure } from '../../state/failure-text.ts';
import { shorten } from '../../state/format.ts';
import { serverHost, tenancyName } from '../../state/labels.ts';
import { mapped } from '../../state/list.ts';
import { leaveForms, showKey } from '../../state/navigation.ts';

type PaletteProps = { session: SessionView; onCommand: (command: Command) => void; onClose: () => void };

const keyPrefix = 'key:';
const linkId = 'link';
const shownKeys = 20;
const minSearchLength = 2;

/** Opens any screen, finds keys, users and campaigns, and runs commands, using only the keyboard. */
export function Palette({ session, onCommand, onClose }: PaletteProps) {
  const [search, setSearch] = useState('');
  const things = session.viewer.userType === 'staff' ? ['key', 'user', 'campaign', 'account', 'partner'] : ['key', 'user', 'campaign'];
  const { view, failure } = useList({ key: 'api-keys', load: () => window.callkey.request('listApiKeys', {}) }).state.value;
  const keys = view?.apiKeys;
  const { found: destinations } = useFound<Destination[]>(search, async (text) =>
    text.length < minSearchLength ? { ok: true, value: [] } : findAnything(session, text),
  );
  const options = useMemo(() => {
    if (isLink(search)) return [{ id: linkId, name: 'Open this link', caption: serverHost(search.trim()) }];
    const query = foldText(search.trim());
    const matches = ({ name }: { name: string }) => foldText(name).includes(query);
    const matchingKeys = query === '' ? [] : (keys ?? []).filter(matches).slice(0, shownKeys);
    const labels = labelKeys(matchingKeys);
    const keyOptions = matchingKeys.map(({ id, name, owner }) => ({
      id: `${keyPrefix}${id}`,
      name: labels.get(id) ?? name,
      caption: owner ? `API key · ${owner.name}` : 'API key',
    }));
    const found = [...commandOptions(session).filter(matches), ...keyOptions, ...(destinations ?? [])];
    const isSearching = destinations === null || (!keys && !failure);
    return found.length === 0 && isSearching ? null : found;
  }, [search, keys, failure, destinations, session]);

  function choose(option: Option): void {
    const { id } = option;
    onClose();
    if (id === linkId) return void requestAnimationFrame(() => void followLink(search));
    const destination = destinations?.find((each) => each.id === id);
    // Waits until the dialog is closed, because an open dialog prevents going to another address.
    if (destination) return void requestAnimationFrame(() => location.assign(destination.address));
    if (id.startsWith(keyPrefix)) leaveForms(() => showKey(id.slice(keyPrefix.length)));
    else onCommand(id as Command);
  }

  return (
    <Dialog title="Go to" onDismiss={onClose}>
      <Picker
        label={`Search for a screen, command, ${things.join(', ')}`}
        listLabel="Screens, commands, keys, users, campaigns and customers"
        placeholder="Screen, command, name, ID, or link"
        search={search}
        onSearch={setSearch}
        options={options}
        onChoose={choose}
      />
      <p class="hint" role="status">
        {options?.length === 0 && `Nothing matches “${shorten(search.trim())}”. `}
        {describeSearched(session)}
      </p>
    </Dialog>
  );
}

function describeSearched(session: SessionView): string {
  const isStaff = session.viewer.userType === 'staff';
  const place = tenancyName(session);
  if (!isStaff) return `Searches in ${place}.`;
  return `Searches all accounts and partners${session.tenancy ? `, and keys, users and campaigns in ${place}` : '. Select one to search its keys, users and campaigns'}.`;
}

async function followLink(link: string): Promise<void> {
  const target = await window.callkey.readLink(link);
  if (target.ok) await openLink(target.value);
  else warn(describeFailure(target.failure));
}

const commandNames: Readonly<Partial<Record<Command, string>>> = {
  'new-api-key': 'Create API key',
  'which-key': 'Which key is this?',
  'switch-tenancy': 'Switch account or partner',
  'switch-server': 'Switch server',
  help: 'Help and keyboard shortcuts',
  'change-password': 'Change password',
  'sign-out': 'Sign out',
};

function commandOptions(session: SessionView): Option[] {
  const screens = screensFor(session.viewer).map(({ name, label }) => ({ id: showCommand(name), name: label, caption: 'Screen' }));
  const commands = commandsFor(session).map((id) => ({ id, name: commandNames[id] ?? '', caption: '' }));
  return [...screens, ...commands.filter(({ name }) => name !== '')];
}

/** An option that opens an address of the console. */
type Destination = Option & { address: string };

/** The maximum number of results of each kind, so that the list stays easy to read. */
const shown = 8;
const idFormat = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/** Finds users and campaigns by name or email, and keys, users and campaigns by ID, without those that the viewer can't see. */
async function findAnything(session: SessionView, search: string): Promise<{ ok: true; value: Destination[] }> {
  const isId = idFormat.test(search);
  const seesUsers = screensFor(session.viewer).some(({ name }) => name === 'users');
  const results = await Promise.all([
    isId ? findKey(search) : null,
    seesUsers ? (isId ? findUser(search) : findUsers(search)) : null,
    findCampaigns(search),
    session.viewer.userType === 'staff' ? findAnyCustomers(search) : null,
  ]);
  return { ok: true, value: results.flatMap((result) => (result?.ok ? result.value : [])) };
}

/** A revoked key still has details, which say who revoked it and why. */
async function findKey(id: string): Promise<Result<Destination[]>> {
  const toOptions = (name: string, caption: string): Destination[] => [
    { id: `key-of-id:${id}`, name, caption, address: formatAddress('api-keys', { open: id }) },
  ];
  const found = await window.callkey.request('showApiKey', { id, timeZone: ownZone.peek() });
  if (found.ok) return { ok: true, value: toOptions(found.value.apiKey.name, 'API key') };
  return mapped(window.callkey.request('showRevokedApiKey', { id }), ({ apiKey }) => toOptions(apiKey.name, 'Revoked API key'));
}

const findUser = (id: string) => mapped(window.callkey.request('previewDeletion', { id, cursor: null }), ({ user }) => [toUser(user)]);

const findUsers = (search: string) =>
  mapped(window.callkey.request('listUsers', { search, cursor: null }), ({ users }) => users.slice(0, shown).map(toUser));

function toUser({ id, name, email }: { id: string; name: string; email: string }): Destination {
  return { id: `user:${id}`, name, caption: `User · ${email}`, address: formatAddress('users', { open: id }) };
}

/** So that staff get from one customer to another. */
const findAnyCustomers = (search: string) =>
  mapped(findCustomers(search), ({ options }) =>
    options
      .slice(0, shown)
      .map(({ tenancy, ...option }): Destination => ({ ...option, address: formatAddress('api-keys', null, tenancy) })),
  );

const findCampaigns = (search: string) =>
  mapped(window.callkey.request('listCampaigns', { search, cursor: null }), ({ campaigns }) =>
    campaigns.slice(0, shown).map(
      ({ id, name, account }): Destination => ({
        id: `campaign:${id}`,
        name,
        caption: `Campaign · ${account.name}`,
        address: formatAddress('calls', { campaign: id }),
      }),
    ),
  );
