import { useMemo, useState } from 'preact/hooks';
import { encodeQR } from 'qr';
import type { EnrolledSecondFactorView, SessionView } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import { counted } from '#contract/text/count.ts';
import { countCodePoints } from '#contract/text/text.ts';
import { Confirm } from '../../components/confirm.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Facts } from '../../components/details.tsx';
import { CloseAction, Dialog } from '../../components/dialog.tsx';
import { CodeField, Form, FormActions, FormError, HiddenUsername, TextField } from '../../components/form.tsx';
import { Mark } from '../../components/icons.tsx';
import { useList } from '../../components/list.tsx';
import { OneTimeSecret, ProtectionHint, SecretDialog, useCloseCommand, useVisibleSecret } from '../../components/secret.tsx';
import { announce } from '../../state/announcement.ts';
import { useIgnoredCommands } from '../../state/commands.ts';
import { lookUpGone } from '../../state/failure-text.ts';
import { formatMembership, userTypeLabels } from '../../state/labels.ts';
import { passwordChanged, secondFactorChanged, session, signOut } from '../../state/session.ts';

/** @property announcement what has just happened */
type SavedCodes = { name: 'save-codes'; announcement: string; codes: OneTimeSecret };
type AccountDialog = { name: 'facts' | 'password' | 'enroll' | 'renew' | 'remove' } | SavedCodes;

export function YourAccount({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [dialog, open] = useState<AccountDialog>({ name: 'facts' });
  const goBack = () => open({ name: 'facts' });
  const saveCodes = (announcement: string, codes: OneTimeSecret) => open({ name: 'save-codes', announcement, codes });

  function done(text: string): void {
    announce(text);
    onClose();
    void secondFactorChanged();
  }

  switch (dialog.name) {
    case 'facts':
      return <AccountFacts session={session} onShow={(name) => open({ name })} onClose={onClose} />;
    case 'password':
      return <ChangePassword onClose={onClose} />;
    case 'enroll':
      return (
        <Dialog title="Set up a second factor" onDismiss={goBack}>
          <EnrollSecondFactor cancel="Cancel" onCancel={goBack} onDone={(codes) => saveCodes('The second factor is on.', codes)} />
        </Dialog>
      );
    case 'renew':
      return (
        <Confirm
          title="Replace your recovery codes?"
          lead="You’ll get ten new codes. All earlier ones will stop working."
          verb="Replace codes"
          verbing="Replacing…"
          act={({ code = '' }) => window.callkey.request('renewRecoveryCodes', { code })}
          onDone={({ recoveryCodes }) =>
            saveCodes('Your earlier recovery codes no longer work.', new OneTimeSecret(recoveryCodes.join('\n')))
          }
          onClose={goBack}
        />
      );
    case 'remove':
      return (
        <Confirm
          title="Turn off the second factor?"
          lead="You’ll be able to sign in with just your password. Your recovery codes will stop working."
          verb="Turn off"
          verbing="Turning off…"
          act={({ code = '' }) => window.callkey.request('removeSecondFactor', { code })}
          lookUp={() => lookUpGone(window.callkey.request('showSecondFactor', {}))}
          onDone={() => done('The second factor is off.')}
          onClose={goBack}
        />
      );
    case 'save-codes':
      return <RecoveryCodes {...dialog} onClose={() => done(dialog.announcement)} />;
  }
}

type AccountFactsProps = {
  session: SessionView;
  onShow: (name: Exclude<AccountDialog['name'], 'save-codes'>) => void;
  onClose: () => void;
};

function AccountFacts({ session: { viewer, secondFactor, signedInWith }, onShow, onClose }: AccountFactsProps) {
  const membership = formatMembership(viewer);
  // A provider has its own second factor, which the core doesn't know about.
  const canEnroll = secondFactor === false && !signedInWith;
  return (
    <Dialog title="Your account" onDismiss={onClose}>
      <Facts
        facts={[
          ['Name', <bdi key="name">{viewer.name}</bdi>],
          ['Email', <bdi key="email">{viewer.email}</bdi>],
          ['Type', userTypeLabels[viewer.userType]],
          ['Belongs to', membership !== '' && <bdi key="membership">{membership}</bdi>],
          ['Signed in with', signedInWith ? <bdi key="with">{signedInWith}</bdi> : 'Password'],
          ['Second factor', secondFactor === true ? <FactorIsOn key="factor" /> : canEnroll && 'Off'],
        ]}
      />
      {canEnroll && <p class="hint">With a second factor, someone who learns your password still can’t sign in without your phone.</p>}
      <CloseAction onClose={onClose}>
        {!signedInWith && (
          <button type="button" onClick={() => onShow('password')}>
            Change password…
          </button>
        )}
        {secondFactor === true && (
          <>
            <button type="button" onClick={() => onShow('renew')}>
              Replace recovery codes…
            </button>
            <button type="button" class="warns" onClick={() => onShow('remove')}>
              Turn off second factor…
            </button>
          </>
        )}
        {canEnroll && (
          <button type="button" onClick={() => onShow('enroll')}>
            Set up second factor…
          </button>
        )}
      </CloseAction>
    </Dialog>
  );
}

function FactorIsOn() {
  const load = () => window.callkey.request('showSecondFactor', {});
  const left = useList({ key: 'second-factor', every: null, load }).state.value.view?.recoveryCodesLeft;
  return <>{left === undefined ? 'On' : `On, ${counted(left, 'recovery code')} left`}</>;
}

export function ChangePassword({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Change password" onDismiss={onClose}>
      <PasswordForm isDue={false} cancel="Cancel" onCancel={onClose} onDone={onClose} />
    </Dialog>
  );
}

/** Shown after signing in with a one-time password. */
export function PasswordDue() {
  useIgnoredCommands();
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
type PasswordFormProps = { isDue: boolean; cancel: string; onCancel: () => void; onDone: () => void };

function PasswordForm({ isDue, cancel, onCancel, onDone }: PasswordFormProps) {
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const [isShown, setShown] = useState(false);
  const [code, setCode] = useState('');
  const asksCode = session.value?.secondFactor === true;
  const input = { newPassword, ...(isDue ? {} : { currentPassword }), ...(asksCode ? { code } : {}) };
  const length = countCodePoints(newPassword);
  return (
    <Form
      act={() => window.callkey.request('changePassword', input)}
      onDone={() => {
        onDone();
        passwordChanged();
        announce(isDue ? 'Password changed.' : 'Password changed. Your other sessions have ended.');
      }}
    >
      <HiddenUsername />
      {!isDue && <CurrentPassword value={currentPassword} onInput={setCurrent} />}
      <TextField
        name="newPassword"
        label="New password"
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
        autofocus={isDue}
      />
      {asksCode && (
        <CodeField
          value={code}
          onInput={setCode}
          {...(isDue && { hint: 'Wait for the next code in your authenticator app: each works only once. Or enter a recovery code.' })}
        />
      )}
      <FormError />
      <FormActions verb="Change password" cancel={cancel} onCancel={onCancel} />
    </Form>
  );
}

/** Shown after signing in, until the user has set up the second factor that the operator requires. */
export function SecondFactorDue() {
  useIgnoredCommands();
  const [codes, setCodes] = useState<OneTimeSecret | null>(null);
  const announcement = 'The second factor is on.';
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
          announcement={announcement}
          codes={codes}
          onClose={() => {
            announce(announcement);
            void secondFactorChanged();
          }}
        />
      )}
    </main>
  );
}

type StepProps<Value> = { cancel: string; onCancel: () => void; onDone: (value: Value) => void };

/** Asks for the password, shows the secret for an authenticator app, and asks for a code. The caller shows the recovery codes. */
function EnrollSecondFactor({ onDone, ...props }: StepProps<OneTimeSecret>) {
  const [enrolled, setEnrolled] = useState<EnrolledSecondFactorView | null>(null);
  return enrolled ? <AppStep {...props} enrolled={enrolled} onDone={onDone} /> : <PasswordStep {...props} onDone={setEnrolled} />;
}

function PasswordStep({ cancel, onCancel, onDone }: StepProps<EnrolledSecondFactorView>) {
  const [currentPassword, setPassword] = useState('');
  return (
    <Form act={() => window.callkey.request('enrollSecondFactor', { currentPassword })} onDone={onDone}>
      <HiddenUsername />
      <CurrentPassword value={currentPassword} onInput={setPassword} />
      <FormError />
      <FormActions verb="Continue" cancel={cancel} onCancel={onCancel} />
    </Form>
  );
}

function CurrentPassword(input: { value: string; onInput: (password: string) => void }) {
  return <TextField name="currentPassword" label="Current password" type="password" autocomplete="current-password" autofocus {...input} />;
}

type AppStepProps = StepProps<OneTimeSecret> & { enrolled: EnrolledSecondFactorView };

/** Shows the secret until the app's first code confirms it. */
function AppStep({ enrolled: { secret, uri }, cancel, onCancel, onDone }: AppStepProps) {
  const [code, setCode] = useState('');
  // Nothing is lost, because the secret hasn't taken effect yet.
  useCloseCommand(() => void window.callkey.closeWindow());
  useVisibleSecret();
  return (
    <Form
      act={() => window.callkey.request('confirmSecondFactor', { code })}
      onDone={({ recoveryCodes }) => onDone(new OneTimeSecret(recoveryCodes.join('\n')))}
    >
      <p>Scan this with an authenticator app, such as the one in your password manager, and enter the code that it shows.</p>
      <QrCode text={uri} label="QR code for your authenticator app" />
      <div class="field">
        <div class="row between label-row">
          <span>Can’t scan it? Enter this key in the app</span>
          <CopyButton text={secret} noun="key" label="Copy key" isSecret />
        </div>
        <code class="totp-secret">{secret.replace(/.{4}(?=.)/g, '$& ')}</code>
        <ProtectionHint />
      </div>
      <CodeField hint="Six digits" inputMode="numeric" value={code} onInput={setCode} autofocus />
      <FormError />
      <FormActions verb="Turn on" verbing="Checking…" cancel={cancel} onCancel={onCancel} />
    </Form>
  );
}

function RecoveryCodes({ announcement, codes, onClose }: Omit<SavedCodes, 'name'> & { onClose: () => void }) {
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

/** The light border around the code that scanners need, in modules (ISO/IEC 18004 §6.3.8). */
const border = 4;

/** Draws a QR code. It's dark on light in both themes, because not all scanners read inverted codes. */
function QrCode({ text, label }: { text: string; label: string }) {
  const rows = useMemo(() => encodeQR(text, 'raw', { ecc: 'low', border }), [text]);
  const path = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`} shape-rendering="crispEdges">
      <rect width={rows.length} height={rows.length} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
