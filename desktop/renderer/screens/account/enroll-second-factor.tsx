import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { EnrolledSecondFactorView } from '#contract/console/session.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { FormActions } from '../../components/forms/form-actions.tsx';
import { OneTimeSecret, ProtectionHint, SecretDialog, useSecretCopies } from '../../components/forms/secret.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useAutofocus } from '../../components/forms/use-autofocus.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { QrCode } from './qr-code.tsx';

type StepProps<Value> = { cancel: string; onCancel: () => void; onDone: (value: Value) => void };

/**
 * Sets up an authenticator app: asks for the password, shows the secret, and asks for a code. The caller shows the recovery codes in another
 * dialog.
 */
export function EnrollSecondFactor({ cancel, onCancel, onDone }: StepProps<OneTimeSecret>) {
  const [enrolled, setEnrolled] = useState<EnrolledSecondFactorView | null>(null);
  if (!enrolled) return <PasswordStep cancel={cancel} onCancel={onCancel} onDone={setEnrolled} />;
  return <AppStep enrolled={enrolled} cancel={cancel} onCancel={onCancel} onDone={onDone} />;
}

function PasswordStep({ cancel, onCancel, onDone }: StepProps<EnrolledSecondFactorView>) {
  const [currentPassword, setPassword] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  useAutofocus(form);
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void run(
          () => window.callkey.request('enrollSecondFactor', { currentPassword }),
          onDone,
          () => void window.callkey.dismissSecret(),
        );
      }}
    >
      <TextField
        label="Current password"
        error={fieldError(failure, 'currentPassword')}
        type="password"
        autocomplete="current-password"
        value={currentPassword}
        onInput={setPassword}
        autofocus
      />
      <FormError text={generalError(failure, ['currentPassword'])} />
      <FormActions verb="Continue" isBusy={isBusy} cancel={cancel} onCancel={unlessBusy(onCancel)} />
    </form>
  );
}

/** Shows the secret until the app's first code confirms it. */
function AppStep({
  enrolled: { secret, uri },
  cancel,
  onCancel,
  onDone,
}: StepProps<OneTimeSecret> & { enrolled: EnrolledSecondFactorView }) {
  const [code, setCode] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  useAutofocus(form);
  useCloseWithoutAsking();
  useSecretCopies();
  // Whether the dialog with the recovery codes has taken over guarding the secrets.
  const isHandedOver = useRef(false);
  useLayoutEffect(
    () => () => {
      if (!isHandedOver.current) void window.callkey.dismissSecret();
    },
    [],
  );

  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void run(
          () => window.callkey.request('confirmSecondFactor', { code }),
          ({ recoveryCodes }) => {
            isHandedOver.current = true;
            onDone(new OneTimeSecret(recoveryCodes.join('\n')));
          },
          () => void window.callkey.dismissSecret(),
        );
      }}
    >
      <p>Scan this with an authenticator app, such as the one in your password manager, and enter the code that it shows.</p>
      <QrCode text={uri} label="QR code for your authenticator app" />
      <div class="field">
        <div class="label-row">
          <span>Can’t scan it? Enter this key in the app</span>
          <CopyButton text={secret} noun="key" label="Copy key" isSecret />
        </div>
        <code class="totp-secret">{secret.replace(/.{4}(?=.)/g, '$& ')}</code>
        <ProtectionHint />
      </div>
      <TextField
        label="Code"
        hint="Six digits"
        error={fieldError(failure, 'code')}
        type="text"
        inputMode="numeric"
        autocomplete="one-time-code"
        spellcheck={false}
        value={code}
        onInput={setCode}
        autofocus
      />
      <FormError text={generalError(failure, ['code'])} />
      <FormActions verb="Turn on" verbing="Checking…" isBusy={isBusy} cancel={cancel} onCancel={unlessBusy(onCancel)} />
    </form>
  );
}

/** Lets the window close without asking. Nothing is lost, because the secret hasn't taken effect yet. */
function useCloseWithoutAsking(): void {
  useEffect(
    () =>
      window.callkey.onCommand((command) => {
        if (command === 'close') void window.callkey.dismissSecret().then(() => window.callkey.closeWindow());
      }),
    [],
  );
}

/** @property announcement what has just happened */
export function RecoveryCodes({ announcement, codes, onClose }: { announcement: string; codes: OneTimeSecret; onClose: () => void }) {
  return (
    <SecretDialog
      title="Save your recovery codes"
      lead={`${announcement} If you lose your phone, enter one of these codes instead of the app’s. Each works once. Don’t keep them only on your phone.`}
      label="Recovery codes"
      rows={10}
      secret={codes}
      lost="These codes can’t be shown again. Without them, an administrator has to reset your second factor if you lose your phone."
      onClose={onClose}
    />
  );
}
