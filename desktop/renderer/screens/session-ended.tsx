import { useRef, useState } from 'preact/hooks';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { Field, FormError, focusFirstInvalid } from '../components/field.tsx';
import { announce } from '../state/announcement.ts';
import { leave, renew, session } from '../state/session.ts';
import { fieldError, wordsOf } from '../state/words.ts';

/** Over whatever is on the screen, which stays as it is: nothing typed is lost. */
export function SessionEnded() {
  const [password, setPassword] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const email = session.value?.viewer.email ?? '';

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (isBusy || password === '') return;
    setBusy(true);
    const result = await renew(password);
    setBusy(false);
    if (result.ok) announce('Signed in again. What you were doing is as you left it.');
    else {
      setFailure(result.failure);
      focusFirstInvalid(form.current);
    }
  }

  const wrong = fieldError(failure, 'email') === null ? null : 'The password is wrong.';
  return (
    <Dialog title="Your session has ended" isAlert onDismiss={() => undefined}>
      <form ref={form} onSubmit={submit} noValidate>
        <p>
          Sign in again as <strong>{email}</strong>. What you were doing is still here.
        </p>
        <Field label="Password" error={wrong}>
          {(binding) => (
            <input
              {...binding}
              type="password"
              autocomplete="current-password"
              value={password}
              autofocus
              onInput={({ currentTarget }) => setPassword(currentTarget.value)}
            />
          )}
        </Field>
        <FormError text={failure && wrong === null ? wordsOf(failure) : null} />
        <div class="actions">
          <button type="button" onClick={leave}>
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
