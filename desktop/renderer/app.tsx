import { useEffect } from 'preact/hooks';
import { Announcer } from './components/announcer.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { ChangePassword } from './screens/change-password.tsx';
import { Incompatible, Unreachable } from './screens/obstacles.tsx';
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
      <Announcer />
      <Tooltip />
    </>
  );
}

function Content() {
  if (!beginning.value) return <main class="starting" aria-busy="true" />;
  if (obstacle.value?.kind === 'incompatible') return <Incompatible core={obstacle.value.core} />;
  if (obstacle.value) return <Unreachable detail={obstacle.value.detail} />;
  if (!session.value) return <SignIn />;
  if (session.value.passwordChangeDue) return <ChangePassword isDue />;
  return <Shell session={session.value} />;
}
