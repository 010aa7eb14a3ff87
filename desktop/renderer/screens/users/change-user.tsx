import { useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import type { UserView } from '#contract/console/users.ts';
import { ConfirmWithCode, useCode } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { FormActions } from '../../components/forms/form-actions.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';
import { AccountField, isWithinOneAccount, useNameWarning } from './create-user.tsx';

type ChangeUserProps = { user: UserView; session: SessionView; onChanged: (user: UserView) => void; onClose: () => void };

/** Renames a user, or moves them to another account in the viewer's scope. */
export function EditUser({ user, session, onChanged, onClose }: ChangeUserProps) {
  const [name, setName] = useState(user.name);
  const [accountId, setAccount] = useState(user.account?.id ?? '');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  const canMove = user.userType !== 'staff' && user.id !== session.viewer.id && !isWithinOneAccount(session);
  const hasMoved = accountId !== (user.account?.id ?? '');
  // Sends only what the user has changed, because someone else may have changed other fields in the meantime.
  const change = {
    ...(name === user.name ? {} : { name }),
    ...(canMove && hasMoved ? { accountId: accountId === '' ? null : accountId } : {}),
  };
  const warning = useNameWarning(name, user.id);
  const code = useCode(failure, 'accountId' in change);
  return (
    <Dialog title="Edit user" onDismiss={close}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (Object.keys(change).length === 0) return onClose();
          void run(
            () => window.callkey.request('changeUser', { id: user.id, ...change, ...code.fields }),
            (view) => onChanged(view.user),
          );
        }}
      >
        <TextField
          label="Name"
          error={fieldError(failure, 'name')}
          warning={warning}
          type="text"
          autocomplete="off"
          value={name}
          onInput={setName}
          autofocus
        />
        {canMove && (
          <AccountField
            isOnlyOne={false}
            userType={user.userType}
            accountId={accountId}
            current={user.account}
            error={fieldError(failure, 'accountId')}
            onChange={setAccount}
          />
        )}
        {hasMoved && (
          <p class="hint" role="status">
            They’ll have to sign in again. Their API keys will move with them immediately.
          </p>
        )}
        {code.field}
        <FormError text={generalError(failure, ['name', 'accountId', 'code'])} />
        <FormActions verb="Save" verbing="Saving…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

/** Asks before disabling or enabling a user and their keys. */
export function DisableUser({ user, onChanged, onClose }: Omit<ChangeUserProps, 'session'>) {
  const isDisabled = user.disabledAt !== null;
  const keys = pluralize(user.apiKeys, 'API key');
  return (
    <ConfirmWithCode
      title={isDisabled ? 'Enable user?' : 'Disable user?'}
      lead={
        isDisabled ? (
          <>
            <strong>{user.name}</strong> ({user.email}) will be able to sign in, and their {keys} will work again.
          </>
        ) : (
          <>
            <strong>{user.name}</strong> ({user.email}) will be signed out everywhere, and their {keys} will stop working immediately. Calls
            already queued will still be dialed. You can enable the user again.
          </>
        )
      }
      verb={isDisabled ? 'Enable' : 'Disable'}
      verbing={isDisabled ? 'Enabling…' : 'Disabling…'}
      needsCode={isDisabled}
      act={(code) => window.callkey.request('changeUser', { id: user.id, disabled: !isDisabled, ...code })}
      onDone={(view) => onChanged(view.user)}
      onClose={onClose}
    />
  );
}
