import type { UserView } from '#contract/console.ts';
import { DangerActions } from '../../components/forms/confirm-danger.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { describeFailure } from '../../state/format/failure-text.ts';

type ResetPasswordProps = { user: UserView; onReset: (password: string) => void; onClose: () => void };

/** Asks before replacing a user's password with a one-time password. */
export function ResetPassword({ user, onReset, onClose }: ResetPasswordProps) {
  const { isBusy, failure, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  return (
    <Dialog
      title="Reset password?"
      lead={
        <>
          <strong>{user.name}</strong> will be signed out everywhere and will need the one-time password that you give them. Their API keys
          keep working.
        </>
      }
      isAlert
      onDismiss={close}
    >
      <FormError text={failure && describeFailure(failure)} />
      <DangerActions
        verb="Reset password"
        verbing="Resetting…"
        isBusy={isBusy}
        onCancel={close}
        onAct={() =>
          void run(
            () => window.callkey.request('resetPassword', { id: user.id }),
            ({ password }) => onReset(password),
            () => void window.callkey.dismissSecret(),
          )
        }
      />
    </Dialog>
  );
}
