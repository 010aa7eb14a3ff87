import type { ComponentType } from 'preact';
import { useCallback, useEffect, useLayoutEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { Command } from '../../../ipc.ts';
import { isShowCommand, type ScreenName, type ShowCommand, screens, screensFor, showCommand } from '../../../screens.ts';
import { Empty, Loadable, useFreshResource } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { canUseKeys, useCommands } from '../../state/commands.ts';
import { arrivals, dialogCount, openDialog, type ScreenProps, screen, showScreen, startAtHeading } from '../../state/navigation.ts';
import { serverName } from '../../state/server-marks.ts';
import { refreshKey, server, sessionChangedElsewhere, setSession, signOut, tenancyKey } from '../../state/session.ts';
import { windowTitle } from '../../state/workspace.ts';
import { YourAccount } from '../account/your-account.tsx';
import { Activity } from '../activity/activity.tsx';
import { ApiKeys } from '../api-keys/api-keys.tsx';
import { Calls } from '../calls/calls.tsx';
import { Directory } from '../directory/directory.tsx';
import { Protection } from '../protection/protection.tsx';
import { ChangePassword } from '../session/change-password.tsx';
import { Servers } from '../session/servers.tsx';
import { SetUp } from '../session/set-up.tsx';
import { TenancySwitcher } from '../session/tenancy-switcher.tsx';
import { Users } from '../users/users.tsx';
import { Help } from './help.tsx';
import { Palette } from './palette.tsx';
import { Sidebar } from './sidebar.tsx';

/** The component for each screen in desktop/screens.ts. The compiler reports a missing one. */
const components: Readonly<Record<ScreenName, ComponentType<ScreenProps>>> = {
  'api-keys': ApiKeys,
  calls: Calls,
  users: Users,
  activity: Activity,
  directory: Directory,
  protection: Protection,
};

/** Shows the frame around every screen: navigation, tenancy and viewer. */
export function Shell({ session }: { session: SessionView }) {
  const available = screensFor(session.viewer);
  const current = available.find(({ name }) => name === screen.value) ?? screens[0];
  useCommands(useCallback((command) => runCommand(command, session), [session]));
  // A layout effect, so that it can't take the focus from what the user has already chosen on the new screen.
  useLayoutEffect(startAtHeading, [arrivals.value]);

  usePageKeys();
  useOwnChanges(session);
  useWindowTitle(windowTitle(current.label, session, serverName(server.value)));

  const Content = components[current.name];
  const needsTenancy = current.needsTenancy && !canUseKeys(session);
  return (
    <div class="shell">
      <Sidebar session={session} current={current.name} onPalette={() => runCommand('palette', session)} />
      <main key={`${tenancyKey.value}/${current.name}`}>
        {needsTenancy ? <NoTenancy title={current.label} /> : <Content session={session} title={current.label} />}
      </main>
      {openDialog.value === 'switch-tenancy' && <TenancySwitcher session={session} onClose={closeDialog} />}
      {openDialog.value === 'palette' && (
        <Palette session={session} onCommand={(command) => runAfterDialog(command, session)} onClose={closeDialog} />
      )}
      {openDialog.value === 'help' && <Help session={session} onClose={closeDialog} />}
      {openDialog.value === 'switch-server' && <Servers onClose={closeDialog} />}
      {openDialog.value === 'change-password' && <ChangePassword onClose={closeDialog} />}
      {openDialog.value === 'your-account' && <YourAccount session={session} onClose={closeDialog} />}
    </div>
  );
}

/** `/` moves the focus to the screen's search, and `?` shows the shortcuts, as on many pages. */
function usePageKeys(): void {
  // A layout effect, so that a visible screen is already listening.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest('input:not([type="checkbox"]), select, textarea, dialog');
      const search = document.querySelector<HTMLElement>('main input[type="search"]');
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      if (event.key === '?') openDialog.value = 'help';
      else if (event.key === '/' && search) search.focus();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
}

const ownChangesMs = 60_000;

/**
 * Detects changes by an administrator, such as renaming the user or the selected account, and a second factor that
 * the user has set up elsewhere. These change what the user sees and must enter.
 */
function useOwnChanges(session: SessionView): void {
  const { viewer } = session;
  const resource = useFreshResource('session', () => window.callkey.request('showSession', {}), ownChangesMs);
  const { value } = resource.state.value;
  // Another user has signed in in another tab, whose message didn't arrive. Following it replaces the screen, so it waits while a secret is
  // visible.
  useEffect(() => {
    const { isLoading, failure } = resource.state.peek();
    if (!value || value.viewer.id === viewer.id || isLoading || failure || document.querySelector('#secret')) return;
    sessionChangedElsewhere({ ok: true, value });
  }, [value, dialogCount.value]);
  useEffect(() => {
    const now = value?.viewer;
    if (!value || !now || now.id !== viewer.id || value.tenancy?.id !== session.tenancy?.id) return;
    if (ownKey(value) === ownKey(session)) return;
    setSession(value);
  }, [value]);
}

function ownKey({ viewer: { name, account, partner }, tenancy, secondFactor }: SessionView): string {
  return JSON.stringify([name, account, partner, tenancy, secondFactor]);
}

/** Sets the document's title, which is also the window's. */
function useWindowTitle(title: string): void {
  useEffect(() => {
    document.title = title;
    return () => {
      document.title = 'Callkey';
    };
  }, [title]);
}

/** Runs a command after the palette has closed, because an open dialog would block it. */
function runAfterDialog(command: Command, session: SessionView): void {
  requestAnimationFrame(() => runCommand(command, session));
}

function closeDialog(): void {
  openDialog.value = null;
}

const commandHandlers: Readonly<Record<Exclude<Command, ShowCommand>, (session: SessionView) => void>> = {
  palette: () => {
    openDialog.value = 'palette';
  },
  'new-api-key': (session) => {
    if (canUseKeys(session)) openOverApiKeys('create-key');
    else openDialog.value = 'switch-tenancy';
  },
  'which-key': () => openOverApiKeys('which-key'),
  'switch-tenancy': ({ viewer }) => {
    if (viewer.userType === 'staff') openDialog.value = 'switch-tenancy';
  },
  'switch-server': () => {
    openDialog.value = 'switch-server';
  },
  help: () => {
    openDialog.value = 'help';
  },
  'change-password': () => {
    openDialog.value = 'change-password';
  },
  find: () => document.querySelector<HTMLElement>('main input[type="search"]')?.focus(),
  refresh: () => {
    refreshKey.value += 1;
  },
  'sign-out': () => void signOut(),
  // SecretDialog handles this command.
  close: () => undefined,
  // The app handles this command, also over a dialog.
  lock: () => undefined,
};

/** Runs a menu command. An open dialog blocks it, like the rest of the page. */
function runCommand(command: Command, session: SessionView): void {
  if (document.querySelector('dialog[open]')) return;
  if (isShowCommand(command)) {
    const allowed = screensFor(session.viewer).find(({ name }) => showCommand(name) === command);
    if (allowed) showScreen(allowed.name);
  } else commandHandlers[command](session);
}

function openOverApiKeys(dialog: 'create-key' | 'which-key'): void {
  showScreen('api-keys');
  openDialog.value = dialog;
}

/** Shown to staff who haven't selected anything yet. On a new server, they must first create something to select. */
function NoTenancy({ title }: { title: string }) {
  const first = useFreshResource('any-partner', () => window.callkey.request('listDirectoryPartners', {}));
  const { value } = first.state.value;
  if (value) return value.partners.length === 0 ? <SetUp onAlreadySetUp={() => void first.refresh()} /> : <ChooseTenancy title={title} />;
  return (
    <Page title={title}>
      <Loadable resource={first} noun="accounts">
        {() => null}
      </Loadable>
    </Page>
  );
}

function ChooseTenancy({ title }: { title: string }) {
  return (
    <Page title={title}>
      <Empty title="Choose an account or partner first">
        <p>This screen shows the data of the account or partner you choose.</p>
        <button
          type="button"
          class="primary"
          onClick={() => {
            openDialog.value = 'switch-tenancy';
          }}
        >
          Choose
        </button>
      </Empty>
    </Page>
  );
}
