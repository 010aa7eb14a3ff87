import { useState } from 'preact/hooks';
import type { Failure, SignInAnswer } from '../../../ipc.ts';
import { CodeField } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { announce } from '../../state/announcement.ts';
import { describeFailure, fieldError } from '../../state/format/failure-text.ts';
import { enterCodeAgain, resetSession, server, session, signInAgain } from '../../state/session.ts';
import { ProviderButton, useSignInOptions } from './provider-sign-in.tsx';

/** Asks the user to sign in again, in a dialog over the current screen, so that typed text isn't lost. */
export function SessionEnded() {
  const [password, setPassword] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const [code, setCode] = useState('');
  const { isBusy, failure, form, run, clearError, unlessBusy } = useAction();
  const email = session.value?.viewer.email ?? '';
  const options = useSignInOptions(server.value);

  function submit(event: Event): void {
    event.preventDefault();
    if (password === '' || (needsCode && code.trim() === '')) return;
    const announceReturn = () => announce('Signed in again. Your work is as you left it.');
    // Signing in closes this dialog, so the callback for an unmounted component runs.
    const next = (answer: SignInAnswer) => {
      if (!('viewer' in answer)) setNeedsCode(true);
    };
    void run(() => (needsCode ? enterCodeAgain(code) : signInAgain(password)), next, announceReturn);
  }

  function startOver(): void {
    setPassword('');
    setNeedsCode(false);
    setCode('');
    clearError();
  }

  const passwordError = fieldError(failure, 'password') === null ? null : 'Incorrect password.';
  const otherError = (other: Failure) => (passwordError === null && fieldError(other, 'code') === null ? describeFailure(other) : null);
  return (
    <Dialog
      title="Your session has ended"
      lead={
        <>
          Sign in again as <strong>{email}</strong>. Your work on this screen is kept.
        </>
      }
      isAlert
      onDismiss={() => undefined}
    >
      <form ref={form} onSubmit={submit} noValidate>
        {needsCode && <CodeField error={fieldError(failure, 'code')} value={code} onInput={setCode} autofocus />}
        {options.password && !needsCode && (
          <TextField
            label="Password"
            error={passwordError}
            type="password"
            autocomplete="current-password"
            value={password}
            onInput={setPassword}
            autofocus
          />
        )}
        {options.oidc && !needsCode && (
          <ProviderButton name={options.oidc.name} keepSignedIn={null} staysOnPage isPrimary={!options.password} />
        )}
        <FormError text={failure ? otherError(failure) : options.problem} />
        <div class="actions">
          <button type="button" aria-disabled={isBusy} onClick={unlessBusy(resetSession)}>
            Discard and sign out
          </button>
          {needsCode && (
            <button type="button" aria-disabled={isBusy} onClick={unlessBusy(startOver)}>
              Back
            </button>
          )}
          {options.password && (
            <button type="submit" class="primary" aria-disabled={isBusy || password === ''}>
              {isBusy ? 'Signing in…' : 'Sign in again'}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
