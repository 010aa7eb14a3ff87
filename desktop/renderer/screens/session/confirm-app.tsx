import { useState } from 'preact/hooks';
import { FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { Mark } from '../../components/mark.tsx';
import { generalError } from '../../state/format/failure-text.ts';
import { signInResult } from '../../state/session.ts';

/** Asks before handing the sign-in over to a program on this computer. Otherwise, any link could do that. */
export function ConfirmApp() {
  const { isBusy, failure, run } = useAction();
  const [isOver, setOver] = useState(false);
  return (
    <main class="entrance">
      <div class="card">
        <Mark />
        <h1>Sign in to the app?</h1>
        {isOver ? (
          <p role="status">Go back to the Callkey app. You can close this tab.</p>
        ) : (
          <>
            <p>
              The Callkey app on this computer wants to sign in as you. Continue only if you just started signing in there. If you came here
              from a link, cancel.
            </p>
            <FormError
              text={failure?.kind === 'session-ended' ? 'This took too long. Start again in the app.' : generalError(failure, [])}
            />
            <div class="actions">
              <button
                type="button"
                onClick={() => {
                  signInResult.value = null;
                }}
              >
                Cancel
              </button>
              <button
                type="button"
                class="primary"
                aria-disabled={isBusy}
                onClick={() =>
                  void run(
                    () => window.callkey.confirmApp(),
                    () => setOver(true),
                  )
                }
              >
                Sign in to the app
              </button>
            </div>
          </>
        )}
      </div>
    </main>
  );
}
