import { useState } from 'preact/hooks';
import { Dialog } from '../components/dialog.tsx';
import { FormError } from '../components/field.tsx';
import { TextField } from '../components/text-field.tsx';
import { useAction } from '../components/use-action.ts';
import { announce } from '../state/announcement.ts';
import { leave, renew, session } from '../state/session.ts';
import { fieldError, wordsOf } from '../state/words.ts';

/** Over whatever is on the screen, which stays as it is: nothing typed is lost. */
export function SessionEnded() {
  const [password, setPassword] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const email = session.value?.viewer.email ?? '';

  function submit(event: Event): void {
    event.preventDefault();
    if (password === '') return;
    const again = () => announce('Signed in again. What you were doing is as you left it.');
    // By then, this dialog has gone.
    void run(() => renew(password), again, again);
  }

  const wrong = fieldError(failure, 'email') === null ? null : 'The password is wrong.';
  return (
    <Dialog
      title="Your session has ended"
      lead={
        <>
          Sign in again as <strong>{email}</strong>. What you were doing is still here.
        </>
      }
      isAlert
      onDismiss={() => undefined}
    >
      <form ref={form} onSubmit={submit} noValidate>
        <TextField
          label="Password"
          error={wrong}
          type="password"
          autocomplete="current-password"
          value={password}
          onInput={setPassword}
          autofocus
        />
        <FormError text={failure && wrong === null ? wordsOf(failure) : null} />
        <div class="actions">
          <button type="button" aria-disabled={isBusy} onClick={unlessBusy(leave)}>
            Leave This Behind
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy || password === ''}>
            {isBusy ? 'Signing in …' : 'Sign in again'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
