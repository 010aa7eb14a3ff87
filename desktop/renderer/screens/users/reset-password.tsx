import type { UserView } from '#contract/console/users.ts';
import { ConfirmWithCode } from '../../components/forms/confirm-with-code.tsx';
import { announce } from '../../state/announcement.ts';

type ResetProps = { user: UserView; onClose: () => void };

/** Asks before replacing a user's password with a one-time password. */
export function ResetPassword({ user, onReset, onClose }: ResetProps & { onReset: (password: string) => void }) {
  return (
    <ConfirmWithCode
      title="Reset password?"
      lead={
        <>
          <strong>{user.name}</strong> will be signed out everywhere and will need the one-time password that you give them. Their API keys
          keep working.
        </>
      }
      verb="Reset password"
      verbing="Resetting…"
      act={(code) => window.callkey.request('resetPassword', { id: user.id, ...code })}
      onDone={({ password }) => onReset(password)}
      onDoneUnmounted={() => void window.callkey.dismissSecret()}
      onClose={onClose}
    />
  );
}

/** Asks before removing the second factor of a user who has lost it. */
export function ResetSecondFactor({ user, onDone, onClose }: ResetProps & { onDone: () => void }) {
  return (
    <ConfirmWithCode
      title="Reset second factor?"
      lead={
        <>
          Make sure that it’s really <strong>{user.name}</strong> who’s asking. They’ll be signed out everywhere, and can then sign in with
          just their password until they set up a second factor again.
        </>
      }
      verb="Reset second factor"
      verbing="Resetting…"
      act={(code) => window.callkey.request('resetSecondFactor', { id: user.id, ...code })}
      onDone={() => {
        announce(`The second factor of ${user.name} was reset.`);
        onDone();
      }}
      onClose={onClose}
    />
  );
}

/** Asks before unlinking a user from their identity at the provider. */
export function UnlinkUser({ user, onDone, onClose }: ResetProps & { onDone: () => void }) {
  return (
    <ConfirmWithCode
      title="Unlink from the provider?"
      lead={
        <>
          The sessions of <strong>{user.name}</strong> will end. The next person who signs in there with this user’s email address will be
          linked instead.
        </>
      }
      verb="Unlink"
      verbing="Unlinking…"
      act={(code) => window.callkey.request('unlinkUser', { id: user.id, ...code })}
      onDone={() => {
        announce(`${user.name} was unlinked.`);
        onDone();
      }}
      onClose={onClose}
    />
  );
}
