import { batch, effect } from '@preact/signals';
import type { SessionView } from '#contract/console/session.ts';
import type { LinkTarget } from '../../ipc.ts';
import { type ScreenName, screens, screensFor } from '../../screens.ts';
import { warn } from './announcement.ts';
import { describeFailure } from './failure-text.ts';
import { filtersOf } from './filters.ts';
import { leaveForms, screen, showScreen } from './navigation.ts';
import {
  addressTenancy,
  addServer,
  selectTenancyIn,
  server,
  session,
  setSession,
  startupState,
  switchServer,
  type TenancyChoice,
  tenancyKey,
} from './session.ts';

type Tenancy = Extract<TenancyChoice, { id: string }>;
type Target = { name: ScreenName; filters: object; tenancy: Tenancy | null };

const currentFilters = (name: ScreenName) => filtersOf(name).current(tenancyKey.value);

function writeAddress({ name, filters, tenancy }: Target): string {
  const { path, query } = filtersOf(name).write(filters);
  if (tenancy) query.set('tenancy', `${tenancy.kind}/${tenancy.id}`);
  // Keeps these characters readable, because they don't end a part of a query.
  const written = query.toString().replaceAll('%2F', '/').replaceAll('%40', '@');
  return `#/${name}${path}${written === '' ? '' : `?${written}`}`;
}

/** Reads an address. @returns null if it isn't the address of a screen */
function readAddress(hash: string): Target | null {
  const [path = '', search = ''] = hash.split('?', 2);
  const [start, screenName, ...parts] = path.split('/');
  const screen = screens.find(({ name }) => name === screenName);
  if (start !== '#' || !screen) return null;
  const query = new URLSearchParams(search);
  const filters = filtersOf(screen.name).read(parts.map(decode), query);
  const [, kind, id] = /^(account|partner)\/(.+)$/.exec(query.get('tenancy') ?? '') ?? [];
  const tenancy = id !== undefined && (kind === 'account' || kind === 'partner') ? ({ kind, id } as const) : null;
  return filters && { name: screen.name, filters, tenancy };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What links to a screen can set. */
type Links = {
  'api-keys': 'open' | 'owner';
  calls: 'campaign' | 'open' | 'apiKey';
  users: 'open';
  activity: 'actor' | 'open' | 'subject';
  directory: 'kind' | 'open';
};

/** Returns a screen's address in the shown tenancy. @param set what the link sets; null for the filters as the user left them */
export function formatAddress<Name extends ScreenName>(
  name: Name,
  set: (Name extends keyof Links ? Partial<Record<Links[Name], string>> : never) | null,
  tenancy?: Tenancy,
): string {
  const filters = set === null ? currentFilters(name).value : { ...filtersOf(name).initial, ...set };
  return writeAddress({ name, filters, tenancy: tenancy ?? session.value?.tenancy ?? null });
}

/** Returns the URL that a colleague can open in a browser. */
export function linkTo(address: string): string {
  return new URL(address, choosesServer() ? `${server.value}/` : document.baseURI).href;
}

const currentAddress = () =>
  writeAddress({ name: screen.value, filters: currentFilters(screen.value).value, tenancy: session.value?.tenancy ?? null });

/** Returns the parts of an address whose changes Back can undo: the path, the tenancy and the open call. */
function readStep(hash: string): string {
  const query = new URLSearchParams(hash.split('?')[1]);
  return `${hash.split('?')[0]} ${query.get('tenancy')} ${query.get('call')}`;
}

/** Gives everything that a screen shows an address, which survives a reload and can be opened by a colleague or in a new tab. */
export function followAddresses(): void {
  addressTenancy.value = readAddress(location.hash)?.tenancy ?? null;
  let shownTo: string | null = null;
  effect(() => {
    const viewer = session.value?.viewer.id ?? null;
    if (viewer === null) {
      // The next user starts on the home screen.
      if (shownTo !== null) navigate('#', 'replace');
      shownTo = null;
      return;
    }
    const isFirst = shownTo === null;
    shownTo = viewer;
    const available = session.value ? screensFor(session.value.viewer).map(({ name }) => name) : [];
    if (isFirst) {
      const target = readAddress(location.hash);
      if (!isEmpty(location.hash) && (!target || !available.includes(target.name))) warn(noScreen);
      apply(target);
    }
    if (!available.includes(screen.value)) screen.value = screens[0].name;
    const address = currentAddress();
    const before = readAddress(location.hash);
    const isStep = !isFirst && before !== null && available.includes(before.name) && readStep(address) !== readStep(location.hash);
    navigate(address, isStep ? 'push' : 'replace');
  });
  addEventListener('hashchange', () => void goToAddress());
  window.callkey.onLink((target) => void openLink(target));
}

const noScreen = 'This screen doesn’t exist, or you don’t have access to it.';

const isEmpty = (hash: string) => /^#?\/?$/.test(hash);

/** Opens a link to a screen, which may be on another server. */
export async function openLink({ server: address, address: hash }: LinkTarget): Promise<void> {
  // A dialog may contain typed text or a secret.
  if (findDialog()) return warn('Close this dialog, then open the link again.');
  if (address !== server.peek() || (!session.peek() && startupState.peek() === null)) {
    const servers = await window.callkey.listServers();
    if (servers.some((known) => known.address === address)) await switchServer(address);
    else if (choosesServer()) addServer(address);
  }
  if (hash === '') return;
  navigate(hash, 'push');
  await goToAddress();
}

/** Changes the address. Nothing else does. @param how whether Back returns to the address before */
function navigate(address: string, how: 'push' | 'replace'): void {
  if (location.hash !== address) history[`${how}State`](null, '', address);
}

const choosesServer = () => window.callkey.capabilities.choosesServer;

function apply(target: Target | null): void {
  if (!target) return;
  batch(() => {
    screen.value = target.name;
    const filters = currentFilters(target.name);
    filters.value = { ...filters.peek(), ...target.filters };
  });
}

function findDialog(): Element | undefined {
  return [...document.querySelectorAll('dialog[open]')].at(-1);
}

async function goToAddress(): Promise<void> {
  const now = session.peek();
  if (!now) {
    addressTenancy.value = readAddress(location.hash)?.tenancy ?? null;
    return;
  }
  if (location.hash === currentAddress()) return;
  const dialog = findDialog();
  const target = readAddress(location.hash);
  if (dialog) {
    // Restore the address, because Back closes the dialog, not the screen under it. A dialog with a secret asks first.
    navigate(currentAddress(), 'push');
    dialog.dispatchEvent(new Event('cancel', { cancelable: true }));
  } else if (isEmpty(location.hash)) navigate(currentAddress(), 'replace');
  else if (!target || !screensFor(now.viewer).some(({ name }) => name === target.name))
    leaveForms(goToStart, () => navigate(currentAddress(), 'push'));
  else
    leaveForms(
      () => void goTo(target, now),
      () => navigate(currentAddress(), 'push'),
    );
}

function goToStart(): void {
  warn(noScreen);
  showScreen(screens[0].name);
  navigate(currentAddress(), 'replace');
}

async function goTo(target: Target, now: SessionView): Promise<void> {
  const { hash } = location;
  // Selects the target's tenancy first, if it isn't the current one.
  const selected = await selectTenancyIn(now, target.tenancy);
  // In the meantime, the user has gone somewhere else.
  if (location.hash !== hash) return;
  if (!selected.ok) warn(describeFailure(selected.failure));
  // A dialog that the user has opened in the meantime stays open, because it may contain a secret or typed text.
  if (!selected.ok || findDialog()) return navigate(currentAddress(), 'replace');
  const shown = selected.value;
  const isElsewhere = screen.peek() !== target.name;
  // In one step: otherwise, the effect above would add an address to the history that the user never visited.
  batch(() => {
    if (shown !== now) setSession(shown);
    apply(target);
  });
  if (isElsewhere) showScreen(target.name);
}
