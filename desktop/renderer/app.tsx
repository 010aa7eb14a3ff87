import { useEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { Announcer } from './components/announcer.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { ChangePassword, SecondFactorDue } from './screens/session/account.tsx';
import { BecameIncompatible, Incompatible, Splash, Unreachable } from './screens/session/cannot-connect.tsx';
import { ConfirmApp, SessionEnded, SignIn } from './screens/session/sign-in.tsx';
import { Shell } from './screens/shell/shell.tsx';
import { useIgnoredCommands } from './state/commands.ts';
import {
  connectionError,
  loadStartupState,
  locked,
  session,
  sessionChangedElsewhere,
  sessionHasEnded,
  signInResult,
  startupState,
} from './state/session.ts';

export function App() {
  useEffect(() => {
    void loadStartupState();
    window.callkey.onCommand((command) => {
      if (command === 'lock') locked();
    });
    return window.callkey.onSessionChange(sessionChangedElsewhere);
  }, []);
  return (
    <>
      <Content />
      {sessionHasEnded.value && <SessionEnded />}
      {session.value && connectionError.value?.kind === 'incompatible' && <BecameIncompatible core={connectionError.value.core} />}
      <Announcer />
      <Tooltip />
    </>
  );
}

function Content() {
  if (signInResult.value === 'app') return <ConfirmApp />;
  if (session.value) return <SignedIn session={session.value} />;
  // Commands wait until it's known whether the user is already signed in.
  if (!startupState.value) return <Splash />;
  return <SignedOut />;
}

function SignedOut() {
  return connectionError.value ? <CannotConnect failure={connectionError.value} /> : <SignIn />;
}

function CannotConnect({ failure }: { failure: NonNullable<typeof connectionError.value> }) {
  useIgnoredCommands();
  return failure.kind === 'incompatible' ? <Incompatible core={failure.core} /> : <Unreachable detail={failure.detail} />;
}

function SignedIn({ session }: { session: SessionView }) {
  if (session.passwordChangeDue) return <PasswordChangeDue />;
  if (session.secondFactorDue) return <SecondFactorDue />;
  return <Shell session={session} />;
}

function PasswordChangeDue() {
  useIgnoredCommands();
  return <ChangePassword isDue />;
}
