import { useEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console.ts';
import { Announcer } from './components/announcer.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { ChangePassword } from './screens/change-password.tsx';
import { BecameIncompatible, Incompatible, Opening, Unreachable } from './screens/obstacles.tsx';
import { SessionEnded } from './screens/session-ended.tsx';
import { Shell } from './screens/shell.tsx';
import { SignIn } from './screens/sign-in.tsx';
import { begin, beginning, hasEnded, obstacle, session } from './state/session.ts';

export function App() {
  useEffect(() => {
    void begin();
  }, []);
  return (
    <>
      <Content />
      {hasEnded.value && <SessionEnded />}
      {session.value && obstacle.value?.kind === 'incompatible' && <BecameIncompatible core={obstacle.value.core} />}
      <Announcer />
      <Tooltip />
    </>
  );
}

function Content() {
  if (session.value) return <SignedIn session={session.value} />;
  if (!beginning.value) return <Opening />;
  if (obstacle.value?.kind === 'incompatible') return <Incompatible core={obstacle.value.core} />;
  if (obstacle.value) return <Unreachable detail={obstacle.value.detail} />;
  return <SignIn />;
}

function SignedIn({ session }: { session: SessionView }) {
  if (session.passwordChangeDue) return <ChangePassword isDue />;
  return <Shell session={session} />;
}
