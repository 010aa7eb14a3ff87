import './no-eval.ts';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { Announcer } from './components/announcer.tsx';
import { Tooltip } from './components/popovers.tsx';
import { PasswordDue, SecondFactorDue } from './screens/session/account.tsx';
import { BecameIncompatible, Incompatible, Splash, Unreachable } from './screens/session/connection.tsx';
import { ConfirmApp, SessionEnded, SignIn } from './screens/session/sign-in.tsx';
import { Shell } from './screens/shell/shell.tsx';
import { followAddresses } from './state/addresses.ts';
import { startClock } from './state/clock.ts';
import { leaveKeysToInputMethods, offerCommands } from './state/commands.ts';
import { followTheme } from './state/remembered.ts';
import { followServerMark } from './state/server-marks.ts';
import {
  arrival,
  followTenancy,
  loadStartupState,
  locked,
  session,
  sessionChangedElsewhere,
  startupState,
  trouble,
} from './state/session.ts';

leaveKeysToInputMethods();
followTheme();
startClock();
offerCommands();
followAddresses();
followTenancy();
followServerMark();
render(<App />, document.body);

function App() {
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
      {session.value && trouble.value?.kind === 'session-ended' && <SessionEnded />}
      {session.value && trouble.value?.kind === 'incompatible' && <BecameIncompatible core={trouble.value.core} />}
      <Announcer />
      <Tooltip />
    </>
  );
}

function Content() {
  if (arrival.value?.by === 'provider' && arrival.value.result === 'app') return <ConfirmApp />;
  if (session.value) return <SignedIn session={session.value} />;
  // Commands wait until it's known whether the user is already signed in.
  if (!startupState.value) return <Splash />;
  return <SignedOut />;
}

function SignedOut() {
  const why = trouble.value;
  if (why?.kind === 'incompatible') return <Incompatible core={why.core} />;
  return why?.kind === 'unreachable' ? <Unreachable detail={why.detail} /> : <SignIn />;
}

function SignedIn({ session }: { session: SessionView }) {
  if (session.passwordChangeDue) return <PasswordDue />;
  if (session.secondFactorDue) return <SecondFactorDue />;
  return <Shell session={session} />;
}
