import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console.ts';
import type { Command } from '../../ipc.ts';
import { Icon, type IconName } from '../components/icons.tsx';
import { Empty } from '../components/loadable.tsx';
import { Mark } from '../components/mark.tsx';
import { opened, type Screen, screen, screensOf, screenWords } from '../state/route.ts';
import { sessionTurn, signOut, tenancyKey } from '../state/session.ts';
import { placeOf, userTypeWords } from '../state/words.ts';
import { Activity } from './activity.tsx';
import { ApiKeys } from './api-keys.tsx';
import { Calls } from './calls.tsx';
import { ChangePassword } from './change-password.tsx';
import { People } from './people.tsx';
import { TenancySwitcher } from './tenancy-switcher.tsx';

const icons: Readonly<Record<Screen, IconName>> = { 'api-keys': 'key', calls: 'phone', people: 'people', activity: 'activity' };

const contents: Readonly<Record<Screen, ComponentType<{ session: SessionView }>>> = {
  'api-keys': ApiKeys,
  calls: Calls,
  people: People,
  activity: Activity,
};

/** The frame around every screen: where one is, as whom, and for which tenancy. */
export function Shell({ session }: { session: SessionView }) {
  const available = screensOf(session);
  const current = available.includes(screen.value) ? screen.value : 'api-keys';
  useEffect(() => window.callkey.onCommand((command) => obey(command, session)), [session]);
  // Whoever has just signed in begins at the top.
  useEffect(() => show(screen.peek()), []);

  const Content = contents[current];
  const needsTenancy = session.viewer.userType === 'staff' && !session.tenancy && (current === 'api-keys' || current === 'calls');
  return (
    <div class="shell">
      <header class="sidebar">
        <Mark />
        {session.viewer.userType === 'staff' && <TenancyButton session={session} />}
        <nav aria-label="Screens">
          <ul>
            {available.map((name) => (
              <li key={name}>
                <button type="button" aria-current={name === current ? 'page' : undefined} onClick={() => show(name)}>
                  <Icon name={icons[name]} />
                  {screenWords[name]}
                </button>
              </li>
            ))}
          </ul>
        </nav>
        <Who session={session} />
      </header>
      <main key={`${tenancyKey.value}/${current}`}>
        {needsTenancy ? <NoTenancy title={screenWords[current]} /> : <Content session={session} />}
      </main>
      {opened.value === 'switch-tenancy' && <TenancySwitcher session={session} onClose={close} />}
      {opened.value === 'change-password' && <ChangePassword onClose={close} />}
    </div>
  );
}

function close(): void {
  opened.value = null;
}

/** Goes to a screen, and brings the focus along. */
export function show(name: Screen): void {
  screen.value = name;
  requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus());
}

const orders: Readonly<Record<Command, (session: SessionView) => void>> = {
  'show-api-keys': () => show('api-keys'),
  'show-calls': () => show('calls'),
  'show-people': (session) => {
    if (screensOf(session).includes('people')) show('people');
  },
  'show-activity': () => show('activity'),
  'new-api-key': ({ viewer, tenancy }) => {
    if (viewer.userType === 'staff' && !tenancy) opened.value = 'switch-tenancy';
    else showWith('create-key');
  },
  'which-key': () => showWith('which-key'),
  'switch-tenancy': ({ viewer }) => {
    if (viewer.userType === 'staff') opened.value = 'switch-tenancy';
  },
  'change-password': () => {
    opened.value = 'change-password';
  },
  find: () => document.querySelector<HTMLElement>('main input[type="search"]')?.focus(),
  refresh: () => {
    sessionTurn.value += 1;
  },
  'sign-out': () => void signOut(),
  // The dialog that shows a key value hears this one itself.
  close: () => undefined,
};

/** Does what the menu asks, unless a dialog is open: that has the word. */
function obey(command: Command, session: SessionView): void {
  if (!document.querySelector('dialog[open]')) orders[command](session);
}

function showWith(opening: 'create-key' | 'which-key'): void {
  show('api-keys');
  opened.value = opening;
}

function TenancyButton({ session: { tenancy } }: { session: SessionView }) {
  return (
    <button
      type="button"
      class="tenancy"
      onClick={() => {
        opened.value = 'switch-tenancy';
      }}
    >
      <span>
        <span class="caption">{tenancy ? (tenancy.kind === 'account' ? 'Account' : 'Partner') : 'Account or partner'}</span>
        <span class="name">{tenancy?.name ?? 'None selected'}</span>
      </span>
      <Icon name="switch" />
    </button>
  );
}

function Who({ session: { viewer } }: { session: SessionView }) {
  const place = placeOf(viewer);
  return (
    <div class="who">
      <p>
        <span class="name">{viewer.name}</span>
        <span class="caption">
          {userTypeWords[viewer.userType]}
          {place === '' ? '' : ` · ${place}`}
        </span>
      </p>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          opened.value = 'change-password';
        }}
      >
        Change password
      </button>
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </div>
  );
}

function NoTenancy({ title }: { title: string }) {
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <Empty title="Choose an account or partner first">
        <p>What you see and do here follows the one that you select.</p>
        <button
          type="button"
          class="primary"
          onClick={() => {
            opened.value = 'switch-tenancy';
          }}
        >
          Choose
        </button>
      </Empty>
    </>
  );
}
