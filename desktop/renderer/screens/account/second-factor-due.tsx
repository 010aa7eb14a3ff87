import { useState } from 'preact/hooks';
import type { OneTimeSecret } from '../../components/forms/secret.tsx';
import { Mark } from '../../components/mark.tsx';
import { announce } from '../../state/announcement.ts';
import { useIgnoredCommands } from '../../state/commands.ts';
import { secondFactorChanged, signOut } from '../../state/session.ts';
import { EnrollSecondFactor, RecoveryCodes } from './enroll-second-factor.tsx';

/** Shown after signing in, until the user has set up the second factor that the operator requires. */
export function SecondFactorDue() {
  useIgnoredCommands();
  const [codes, setCodes] = useState<OneTimeSecret | null>(null);
  return (
    <main class="entrance">
      <section class="card" aria-labelledby="second-factor-title">
        <Mark />
        <h1 id="second-factor-title">Set up a second factor</h1>
        <p>
          At each sign-in, this server asks for a code from an authenticator app, in addition to your password. Set up an app to continue.
        </p>
        <EnrollSecondFactor cancel="Sign out" onCancel={() => void signOut()} onDone={setCodes} />
      </section>
      {codes && (
        <RecoveryCodes
          announcement="The second factor is on."
          codes={codes}
          onClose={() => {
            announce('The second factor is on.');
            void secondFactorChanged();
          }}
        />
      )}
    </main>
  );
}
