import { useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { Facts } from '../../components/details.tsx';
import { ConfirmWithCode } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { OneTimeSecret } from '../../components/forms/secret.tsx';
import { useResource } from '../../components/loadable.tsx';
import { announce } from '../../state/announcement.ts';
import { pluralize } from '../../state/format/format.ts';
import { formatMembership, userTypeLabels } from '../../state/format/labels.ts';
import { secondFactorChanged } from '../../state/session.ts';
import { ChangePassword } from '../session/change-password.tsx';
import { EnrollSecondFactor, RecoveryCodes } from './enroll-second-factor.tsx';

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
