import type { ComponentType } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { Setup } from '#contract/console/directory.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { StopsView } from '#contract/protection/dialing.ts';
import type { Command, RequestInput, Result } from '../../../ipc.ts';
import { isShowCommand, type ScreenName, type ShowCommand, screens, screensFor, shortcutAt, showCommand } from '../../../screens.ts';
import { ReferenceLink } from '../../components/api-key.tsx';
import { findCustomers, PickerDialog } from '../../components/choose.tsx';
import { Facts } from '../../components/details.tsx';
import { CloseAction, Dialog } from '../../components/dialog.tsx';
import { Form, FormError, SelectField, SubmitButton, TextField, useAction } from '../../components/form.tsx';
import { Icon, MarkIcon } from '../../components/icons.tsx';
import { Empty, Loadable, useList } from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { StopButton, Stops } from '../../components/stops.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { announce } from '../../state/announcement.ts';
import { canUseKeys, useCommands } from '../../state/commands.ts';
import { isConflict } from '../../state/failure-text.ts';
import { capitalized, formatMembership, formatTenancy, serverHost, tenancyName, userTypeLabels, windowTitle } from '../../state/labels.ts';
import {
  arrivals,
  dialogCount,
  filledForms,
  leaveForms,
  leaving,
  openDialog,
  recoverFocus,
  type ScreenProps,
  screen,
  showScreen,
  startAtHeading,
} from '../../state/navigation.ts';
import { theme, themes } from '../../state/remembered.ts';
import { describeUpdate, describeVersions, serverName } from '../../state/server-marks.ts';
import { refreshKey, server, sessionChangedElsewhere, setSession, signOut, tenancyKey } from '../../state/session.ts';
import { Activity } from '../activity.tsx';
import { ApiKeys } from '../api-keys/api-keys.tsx';
import { Calls } from '../calls/calls.tsx';
import { Directory } from '../directory.tsx';
import { Protection } from '../protection/protection.tsx';
import { ChangePassword, YourAccount } from '../session/account.tsx';
import { Servers } from '../session/connection.tsx';
import { Users } from '../users/users.tsx';
import { Palette } from './palette.tsx';

/** The component for each screen in desktop/screens.ts. The compiler reports a missing one. */
const components: Readonly<Record<ScreenName, ComponentType<ScreenProps>>> = {
  'api-keys': ApiKeys,
  calls: Calls,
  users: Users,
  activity: Activity,
  directory: Directory,
  protection: Protection,
};

export function Shell({ session }: { session: SessionView }) {
  const available = screensFor(session.viewer);
  const current = available.find(({ name }) => name === screen.value) ?? screens[0];
  useCommands(useCallback((command) => runCommand(command, session), [session]));
  // A layout effect, so that it can't take the focus from what the user has already chosen on the new screen.
  useLayoutEffect(startAtHeading, [arrivals.value]);
  useLayoutEffect(recoverFocus, [tenancyKey.value]);

  const stops = useList<StopsView>({ key: 'stops', every: stopsMs, load: () => window.callkey.request('listStops', {}) });
  usePageKeys();
  useOwnChanges(session);
  useWindowTitle(windowTitle(current.label, session, choosesServer ? serverName(server.value) : ''));

  const Content = components[current.name];
  const needsTenancy = current.needsTenancy && !canUseKeys(session);
  return (
    <div class="shell">
      <Sidebar session={session} current={current.name} onCommand={(command) => runCommand(command, session)} />
      <main key={`${tenancyKey.value}/${current.name}`}>
        <Stops.Provider value={stops}>
          {needsTenancy ? <NoTenancy title={current.label} /> : <Content session={session} title={current.label} />}
        </Stops.Provider>
      </main>
      {openDialog.value === 'switch-tenancy' && <TenancySwitcher session={session} onClose={closeDialog} />}
      {openDialog.value === 'palette' && (
        // An open dialog would block the command.
        <Palette
          session={session}
          onCommand={(command) => requestAnimationFrame(() => runCommand(command, session))}
          onClose={closeDialog}
        />
      )}
      {openDialog.value === 'help' && <Help session={session} onClose={closeDialog} />}
      {openDialog.value === 'switch-server' && <Servers onClose={closeDialog} />}
      {openDialog.value === 'change-password' && <ChangePassword onClose={closeDialog} />}
      {leaving.value && <Leaving {...leaving.value} />}
      {openDialog.value === 'your-account' && <YourAccount session={session} onClose={closeDialog} />}
    </div>
  );
}

const stopsMs = 30_000;

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

/** Detects changes made elsewhere to the user, the account or the second factor, which change what the user sees and must enter. */
function useOwnChanges(session: SessionView): void {
  const { viewer } = session;
  const list = useList({ key: 'session', every: ownChangesMs, load: () => window.callkey.request('showSession', {}) });
  const { view } = list.state.value;
  // Another user has signed in in another tab, whose message didn't arrive. This replaces the screen, so it waits for a visible secret.
  useEffect(() => {
    const { isLoading, failure } = list.state.peek();
    if (!view || view.viewer.id === viewer.id || isLoading || failure || document.querySelector('#secret')) return;
    sessionChangedElsewhere({ ok: true, value: view });
  }, [view, dialogCount.value]);
  useEffect(() => {
    if (!view || view.viewer.id !== viewer.id || view.tenancy?.id !== session.tenancy?.id || ownKey(view) === ownKey(session)) return;
    setSession(view);
  }, [view]);
}

function ownKey({ viewer: { name, account, partner }, tenancy, secondFactor }: SessionView): string {
  return JSON.stringify([name, account, partner, tenancy, secondFactor]);
}

function useWindowTitle(title: string): void {
  useEffect(() => {
    document.title = title;
    return () => {
      document.title = 'Callkey';
    };
  }, [title]);
}

function closeDialog(): void {
  openDialog.value = null;
}

const opens = (dialog: typeof openDialog.value) => () => {
  openDialog.value = dialog;
};

const commandHandlers: Readonly<Record<Exclude<Command, ShowCommand>, (session: SessionView) => void>> = {
  palette: opens('palette'),
  'new-api-key': (session) => {
    if (canUseKeys(session)) openOverApiKeys('create-key');
    else openDialog.value = 'switch-tenancy';
  },
  'which-key': () => openOverApiKeys('which-key'),
  'switch-tenancy': ({ viewer }) => {
    if (viewer.userType === 'staff') leaveForms(opens('switch-tenancy'));
  },
  'switch-server': () => leaveForms(opens('switch-server')),
  help: opens('help'),
  'change-password': opens('change-password'),
  find: () => document.querySelector<HTMLElement>('main input[type="search"]')?.focus(),
  refresh: () => {
    refreshKey.value += 1;
  },
  'sign-out': () => leaveForms(() => void signOut()),
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
    if (allowed) leaveForms(() => showScreen(allowed.name));
  } else commandHandlers[command](session);
}

function openOverApiKeys(dialog: 'create-key' | 'which-key'): void {
  leaveForms(() => {
    showScreen('api-keys');
    openDialog.value = dialog;
  });
}

function Leaving({ go, stay }: { go: () => void; stay: () => void }) {
  function leave(): void {
    leaving.value = null;
    filledForms.clear();
    // Waits until the dialog is closed, because an open dialog prevents going to another address.
    requestAnimationFrame(go);
  }
  function goBack(): void {
    leaving.value = null;
    stay();
  }
  return (
    <Dialog title="Discard your input?" lead="It hasn’t been saved." isAlert onDismiss={goBack}>
      <div class="actions">
        <button type="button" data-autofocus onClick={goBack}>
          Go back
        </button>
        <button type="button" class="danger" onClick={leave}>
          Discard
        </button>
      </div>
    </Dialog>
  );
}

/** Shown to staff who haven't selected anything yet. On a new server, they must first create something to select. */
function NoTenancy({ title }: { title: string }) {
  const first = useList({ key: 'any-partner', load: () => window.callkey.request('listDirectoryPartners', {}) });
  const { view } = first.state.value;
  if (view?.partners.length === 0) return <SetUp onAlreadySetUp={() => void first.refresh()} />;
  return (
    <Page title={title} actions={view && <StopButton shown={null} />}>
      <Loadable list={first} noun="accounts" isInPage>
        {() => (
          <Empty title="Choose an account or partner first">
            <p>This screen shows the data of the account or partner you choose.</p>
            <button type="button" class="primary" onClick={opens('switch-tenancy')}>
              Choose
            </button>
          </Empty>
        )}
      </Loadable>
    </Page>
  );
}

type SidebarProps = { session: SessionView; current: ScreenName; onCommand: (command: Command) => void };

/** In a browser, the address bar already names the server. */
const { choosesServer } = window.callkey.capabilities;
const isMac = navigator.userAgent.includes('Mac OS');

function Sidebar({ session, current, onCommand }: SidebarProps) {
  return (
    <header class="sidebar">
      <CurrentTenancy session={session} onSwitch={() => onCommand('switch-tenancy')} />
      <nav aria-label="Screens">
        <ul>
          {screensFor(session.viewer).map(({ name, icon, label }, index) => (
            <li key={name}>
              <a class="quiet button" href={formatAddress(name, null)} aria-current={name === current ? 'page' : undefined}>
                <Icon name={icon} />
                {label}
                {window.callkey.capabilities.hasMenu && (
                  <span class="keys end" aria-hidden="true">
                    {shortcutAt(index).replace('CmdOrCtrl+', isMac ? '⌘' : 'Ctrl ')}
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <button type="button" class="quiet go-to" onClick={() => onCommand('palette')}>
        <Icon name="search" />
        Go to…
        <span class="keys end" aria-hidden="true">
          {isMac ? '⌘K' : 'Ctrl K'}
        </span>
      </button>
      <ViewerPanel session={session} onCommand={onCommand} />
    </header>
  );
}

/** Shows the viewer's tenancy and the server. Staff can switch the tenancy here. */
function CurrentTenancy({ session, onSwitch }: { session: SessionView; onSwitch: () => void }) {
  const names = (
    <span>
      <span class="name clip">{tenancyName(session)}</span>
      {session.tenancy?.partnerName && <span class="caption clip">{session.tenancy.partnerName}</span>}
      {choosesServer && (
        <span class="caption clip" data-tip={serverHost(server.value)}>
          {serverName(server.value)}
        </span>
      )}
    </span>
  );
  if (session.viewer.userType !== 'staff') {
    return (
      <div class="tenancy mark">
        <MarkIcon />
        {names}
      </div>
    );
  }
  return (
    <button type="button" class="quiet tenancy mark" data-tip={formatTenancy(session)} onClick={onSwitch}>
      <MarkIcon />
      {names}
      <Icon name="switch" />
    </button>
  );
}

function ViewerPanel({ session: { viewer, version }, onCommand }: Pick<SidebarProps, 'session' | 'onCommand'>) {
  const membership = formatMembership(viewer);
  const update = describeUpdate(version);
  return (
    <div class="who">
      <p>
        <span class="name clip">{viewer.name}</span>
        <span class="caption">
          {userTypeLabels[viewer.userType]}
          {membership === '' ? '' : ` · ${membership}`}
        </span>
      </p>
      {update !== null && (
        <p class="caption" role="status">
          {update}
        </p>
      )}
      {choosesServer && (
        <button type="button" class="quiet" onClick={() => onCommand('switch-server')}>
          Switch server
        </button>
      )}
      <button type="button" class="quiet" onClick={() => onCommand('help')}>
        Help
      </button>
      <button type="button" class="quiet" onClick={opens('your-account')}>
        Your account
      </button>
      <button type="button" class="quiet" onClick={() => onCommand('sign-out')}>
        Sign out
      </button>
    </div>
  );
}

const shortcuts: readonly (readonly [string, string])[] = [
  [isMac ? '⌘K' : 'Ctrl K', 'Go to a screen, key, user, or campaign'],
  ['/', 'Search the list'],
  ['↓ ↑ or j k', 'Next or previous row'],
  ['← →', 'Move within a row'],
  ['Enter', 'Open details'],
  ['Space', 'Select a row'],
  ['Delete', 'Revoke the key, or delete the user'],
  ['Esc', 'Close details or a dialog'],
  ['?', 'Show this help'],
];

function Help({ session, onClose }: { session: SessionView; onClose: () => void }) {
  return (
    <Dialog title="Help" onDismiss={onClose}>
      <Facts facts={shortcuts} />
      <p>
        <ReferenceLink verb="explains how to place calls." />
      </p>
      <SelectField
        label="Colors"
        value={theme.value}
        options={themes.map((name) => [name, capitalized(name)])}
        onChange={(name) => {
          theme.value = name;
        }}
      />
      <p class="hint">{describeVersions(session.version)}</p>
      <CloseAction onClose={onClose} />
    </Dialog>
  );
}

function TenancySwitcher({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const { isBusy, failure, run, unlessBusy } = useAction();

  function select(choice: RequestInput<'selectTenancy'>): void {
    void run(
      () => window.callkey.request('selectTenancy', choice),
      (selected) => {
        onClose();
        setSession(selected);
        announce(selected.tenancy ? `Selected ${formatTenancy(selected)}.` : 'Selection cleared.');
      },
    );
  }

  return (
    <PickerDialog
      title="Switch account or partner"
      label="Find an account or partner"
      listLabel="Accounts and partners"
      placeholder="Type a name"
      find={findCustomers}
      empty="There are no accounts yet. Create them in Directory."
      onChoose={({ tenancy: { kind, id } }) => select({ kind, id })}
      isBusy={isBusy}
      failure={failure}
      onClose={unlessBusy(onClose)}
    >
      {session.tenancy && (
        <button type="button" aria-disabled={isBusy} onClick={() => select({ kind: null })}>
          Clear selection
        </button>
      )}
    </PickerDialog>
  );
}

const prefilled: Setup = { partner: 'My organization', account: 'My account', campaign: 'My first campaign' };

type SetUpProps = {
  /** Called if someone else has already set up the server. */
  onAlreadySetUp: () => void;
};

/** Creates the first partner, account and campaign of a new server, so that the first key can place calls. */
function SetUp({ onAlreadySetUp }: SetUpProps) {
  const [names, setNames] = useState(prefilled);
  useLayoutEffect(recoverFocus, []);

  async function create(): Promise<Result<SessionView>> {
    const result = await window.callkey.request('setUp', names);
    if (!result.ok && isConflict(result.failure)) onAlreadySetUp();
    return result.ok ? window.callkey.request('showSession', {}) : result;
  }

  const field = (name: keyof Setup, label: string, hint: string) => (
    <TextField name={name} label={label} hint={hint} value={names[name]} onInput={(typed) => setNames({ ...names, [name]: typed })} />
  );
  return (
    <Page title="Set up Callkey">
      <Form class="set-up" act={create} onDone={setSession}>
        <p>
          Calls are placed in campaigns. Name your first campaign, and the account and organization it belongs to. You can change the names
          later.
        </p>
        {field('partner', 'Organization', 'Your own organization, or a partner that you serve. It can have several accounts.')}
        {field('account', 'Account', 'A customer or department. Its API keys can’t be used for other accounts.')}
        {field('campaign', 'Campaign', 'What the calls are about.')}
        <FormError />
        <div class="row">
          <SubmitButton verb="Create and continue" verbing="Creating…" />
        </div>
      </Form>
    </Page>
  );
}
