import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { encodeQR } from 'qr';
import type { EnrolledSecondFactorView, SessionView } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { countCodePoints } from '#contract/text/text.ts';
import { CodeField, ConfirmWithCode } from '../../components/confirm.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Facts } from '../../components/details.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FormActions, FormError, TextField, useAction, useAutofocus } from '../../components/form.tsx';
import { Mark } from '../../components/icons.tsx';
import { useResource } from '../../components/list.tsx';
import { OneTimeSecret, ProtectionHint, SecretDialog, useSecretCopies } from '../../components/secret.tsx';
import { announce } from '../../state/announcement.ts';
import { useIgnoredCommands } from '../../state/commands.ts';
import { fieldError, generalError } from '../../state/failure-text.ts';
import { pluralize } from '../../state/format.ts';
import { formatMembership, userTypeLabels } from '../../state/labels.ts';
import { passwordChanged, secondFactorChanged, session, signOut } from '../../state/session.ts';

type Page = 'facts' | 'password' | 'enroll' | 'renew' | 'remove';

/** Shows who is signed in, and how, and lets them change it. */
export function YourAccount({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [page, setPage] = useState<Page>('facts');
  const [saving, setSaving] = useState<{ announcement: string; codes: OneTimeSecret } | null>(null);
  const goBack = () => setPage('facts');

  function finish(text: string): void {
    announce(text);
    onClose();
    void secondFactorChanged();
  }

  if (saving) return <RecoveryCodes {...saving} onClose={() => finish(saving.announcement)} />;
  if (page === 'password') return <ChangePassword onClose={onClose} />;
  if (page === 'enroll') {
    return (
      <Dialog title="Set up a second factor" onDismiss={goBack}>
        <EnrollSecondFactor
          cancel="Cancel"
          onCancel={goBack}
          onDone={(codes) => setSaving({ announcement: 'The second factor is on.', codes })}
        />
      </Dialog>
    );
  }
  if (page === 'renew') {
    return (
      <ConfirmWithCode
        title="Replace your recovery codes?"
        lead="You’ll get ten new codes. All earlier ones will stop working."
        verb="Replace codes"
        verbing="Replacing…"
        act={({ code = '' }) => window.callkey.request('renewRecoveryCodes', { code })}
        onDone={({ recoveryCodes }) =>
          setSaving({ announcement: 'Your earlier recovery codes no longer work.', codes: new OneTimeSecret(recoveryCodes.join('\n')) })
        }
        onDoneUnmounted={() => void window.callkey.dismissSecret()}
        onClose={goBack}
      />
    );
  }
  if (page === 'remove') {
    return (
      <ConfirmWithCode
        title="Turn off the second factor?"
        lead="You’ll be able to sign in with just your password. Your recovery codes will stop working."
        verb="Turn off"
        verbing="Turning off…"
        act={({ code = '' }) => window.callkey.request('removeSecondFactor', { code })}
        onDone={() => finish('The second factor is off.')}
        onClose={goBack}
      />
    );
  }
  return <AccountFacts session={session} onShow={setPage} onClose={onClose} />;
}

type AccountFactsProps = { session: SessionView; onShow: (page: Page) => void; onClose: () => void };

function AccountFacts({ session: { viewer, secondFactor, signedInWith }, onShow, onClose }: AccountFactsProps) {
  const membership = formatMembership(viewer);
  return (
    <Dialog title="Your account" onDismiss={onClose}>
      <Facts
        facts={[
          ['Name', <bdi key="name">{viewer.name}</bdi>],
          ['Email', <bdi key="email">{viewer.email}</bdi>],
          ['Type', userTypeLabels[viewer.userType]],
          ...(membership === '' ? [] : ([['Belongs to', <bdi key="membership">{membership}</bdi>]] as const)),
          ['Signed in with', signedInWith ? <bdi key="with">{signedInWith}</bdi> : 'Password'],
          // A provider has its own second factor, which the core doesn't know about.
          ...(secondFactor === true ? ([['Second factor', <FactorIsOn key="factor" />]] as const) : []),
          ...(secondFactor === false && !signedInWith ? ([['Second factor', 'Off']] as const) : []),
        ]}
      />
      {secondFactor === false && !signedInWith && (
        <p class="hint">With a second factor, someone who learns your password still can’t sign in without your phone.</p>
      )}
      <div class="actions">
        {!signedInWith && (
          <button type="button" onClick={() => onShow('password')}>
            Change password…
          </button>
        )}
        {secondFactor === true && (
          <button type="button" onClick={() => onShow('renew')}>
            Replace recovery codes…
          </button>
        )}
        {secondFactor === true && (
          <button type="button" class="warns" onClick={() => onShow('remove')}>
            Turn off second factor…
          </button>
        )}
        {secondFactor === false && !signedInWith && (
          <button type="button" onClick={() => onShow('enroll')}>
            Set up second factor…
          </button>
        )}
        <button type="button" class="primary" data-autofocus onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** Says how many recovery codes are left, once that has loaded. */
function FactorIsOn() {
  const left = useResource(() => window.callkey.request('showSecondFactor', {})).state.value.value?.recoveryCodesLeft;
  return <>{left === undefined ? 'On' : `On, ${pluralize(left, 'recovery code')} left`}</>;
}

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

type StepProps<Value> = { cancel: string; onCancel: () => void; onDone: (value: Value) => void };

/**
 * Sets up an authenticator app: asks for the password, shows the secret, and asks for a code. The caller shows the recovery codes in another
 * dialog.
 */
function EnrollSecondFactor({ cancel, onCancel, onDone }: StepProps<OneTimeSecret>) {
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
function RecoveryCodes({ announcement, codes, onClose }: { announcement: string; codes: OneTimeSecret; onClose: () => void }) {
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

/** The light border around the code that scanners need, in modules (ISO/IEC 18004 §6.3.8). */
const border = 4;

/** Draws a QR code. It's dark on light in both themes, because not all scanners read inverted codes. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = useMemo(() => drawCode(text), [text]);
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

function drawCode(text: string): { path: string; size: number } {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border });
  const path = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return { path, size: rows.length };
}
