import { useState } from 'preact/hooks';
import { limits } from '#contract/limits.ts';
import { countCodePoints } from '#contract/text/text.ts';
import { CodeField } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { FormActions } from '../../components/forms/form-actions.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useAutofocus } from '../../components/forms/use-autofocus.ts';
import { Mark } from '../../components/mark.tsx';
import { announce } from '../../state/announcement.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { passwordChanged, session, signOut } from '../../state/session.ts';

type ChangePasswordProps = { isDue: true } | { isDue?: false; onClose: () => void };

/** Shows a full screen after a one-time password, and otherwise a dialog. */
export function ChangePassword(props: ChangePasswordProps) {
  if (!props.isDue) {
    return (
      <Dialog title="Change password" onDismiss={props.onClose}>
        <PasswordForm cancel="Cancel" onCancel={props.onClose} onDone={props.onClose} />
      </Dialog>
    );
  }
  return (
    <main class="entrance">
      <section class="card" aria-labelledby="password-title">
        <Mark />
        <h1 id="password-title">Choose a new password</h1>
        <p>You signed in with a one-time password. Choose one that only you know.</p>
        <PasswordForm isDue cancel="Sign out" onCancel={() => void signOut()} onDone={() => undefined} />
      </section>
    </main>
  );
}

/** @property isDue whether the session was started with a one-time password */
type PasswordFormProps = { isDue?: true; cancel: string; onCancel: () => void; onDone: () => void };

function PasswordForm({ isDue, cancel, onCancel, onDone }: PasswordFormProps) {
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const [isShown, setShown] = useState(false);
  const [code, setCode] = useState('');
  const asksCode = session.value?.secondFactor === true;
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  useAutofocus(form);

  function submit(event: Event): void {
    event.preventDefault();
    void run(
      () => window.callkey.request('changePassword', { newPassword, ...(isDue ? {} : { currentPassword }), ...(asksCode ? { code } : {}) }),
      () => {
        onDone();
        passwordChanged();
        announce(isDue ? 'Password changed.' : 'Password changed. Your other sessions have ended.');
      },
    );
  }

  const length = countCodePoints(newPassword);
  return (
    <form ref={form} onSubmit={submit} noValidate>
      {!isDue && (
        <TextField
          label="Current password"
          error={fieldError(failure, 'currentPassword')}
          type="password"
          autocomplete="current-password"
          value={currentPassword}
          onInput={setCurrent}
          autofocus
        />
      )}
      <TextField
        label="New password"
        error={fieldError(failure, 'newPassword')}
        hint={`${limits.passwordMin} to ${limits.passwordMax} characters. Length matters most: use a few words.`}
        aside={
          <span class="counter">
            {length > 0 ? length : ''}{' '}
            <button type="button" class="quiet" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
              {isShown ? 'Hide' : 'Show'} password
            </button>
          </span>
        }
        type={isShown ? 'text' : 'password'}
        spellcheck={false}
        autocomplete="new-password"
        value={newPassword}
        onInput={setNew}
        autofocus={isDue === true}
      />
      {asksCode && (
        <CodeField
          error={fieldError(failure, 'code')}
          value={code}
          onInput={setCode}
          {...(isDue && { hint: 'Wait for the next code in your authenticator app: each works only once. Or enter a recovery code.' })}
        />
      )}
      <FormError text={generalError(failure, isDue ? ['newPassword', 'code'] : ['currentPassword', 'newPassword', 'code'])} />
      <FormActions verb="Change password" isBusy={isBusy} cancel={cancel} onCancel={unlessBusy(onCancel)} />
    </form>
  );
}
