import { useState } from 'preact/hooks';
import { type SessionView, type UserType, type UserView, userTypes } from '#contract/console.ts';
import { Dialog } from '../components/dialog.tsx';
import { Field, FormError } from '../components/field.tsx';
import { Loadable, useResource } from '../components/loadable.tsx';
import { TextField } from '../components/text-field.tsx';
import { useAction } from '../components/use-action.ts';
import { fieldError, generalError, userTypeWords } from '../state/words.ts';

type AddPersonProps = { session: SessionView; onAdded: (user: UserView, password: string) => void; onClose: () => void };

/** The types that the viewer can add: never above the own scope. Without a tenancy, staff add staff. */
function typesFor({ viewer, tenancy }: SessionView): UserType[] {
  const isService = viewer.userType === 'staff' && !tenancy;
  return userTypes.filter((type) => (type === 'staff') === isService);
}

export function AddPerson({ session, onAdded, onClose }: AddPersonProps) {
  const types = typesFor(session);
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [userType, setType] = useState<UserType>(types[0] ?? 'account');
  const [accountId, setAccount] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);

  function submit(event: Event): void {
    event.preventDefault();
    const input = { name, email, userType, ...(accountId === '' ? {} : { accountId }) };
    void run(
      () => window.callkey.addUser(input),
      ({ user, password }) => onAdded(user, password),
      () => void window.callkey.secretIsGone(),
    );
  }

  return (
    <Dialog title="Add person" onDismiss={close}>
      <form ref={form} onSubmit={submit} noValidate>
        <TextField
          label="Name"
          error={fieldError(failure, 'name')}
          type="text"
          autocomplete="off"
          value={name}
          onInput={setName}
          autofocus
        />
        <TextField label="E-mail" error={fieldError(failure, 'email')} type="email" autocomplete="off" value={email} onInput={setEmail} />
        <Field label="Type" error={fieldError(failure, 'userType')} hint={typeHints[userType]}>
          {(binding) => (
            <select
              {...binding}
              value={userType}
              onChange={({ currentTarget }) => {
                setType(types.find((type) => type === currentTarget.value) ?? userType);
                setAccount('');
              }}
            >
              {types.map((type) => (
                <option key={type} value={type}>
                  {userTypeWords[type]}
                </option>
              ))}
            </select>
          )}
        </Field>
        {userType !== 'staff' && (
          <AccountField
            isOnlyOne={isWithinOneAccount(session)}
            userType={userType}
            accountId={accountId}
            error={fieldError(failure, 'accountId')}
            onChange={setAccount}
          />
        )}
        <FormError text={generalError(failure, ['name', 'email', 'userType', 'accountId'])} />
        <div class="actions">
          <button type="button" aria-disabled={isBusy} onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy}>
            {isBusy ? 'Adding …' : 'Add Person'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const typeHints: Readonly<Record<UserType, string>> = {
  account: 'Works in one account, and sees the own keys only.',
  partner: 'Sees the keys and people of the accounts beneath the partner, or of the one account that the login is tied to.',
  staff: 'Sees whichever account or partner is selected.',
};

/** Whether the viewer's scope is one account: whoever is added then belongs to it. */
function isWithinOneAccount({ viewer, tenancy }: SessionView): boolean {
  return viewer.userType === 'staff' ? tenancy?.kind === 'account' : viewer.account !== null;
}

type AccountFieldProps = {
  isOnlyOne: boolean;
  userType: UserType;
  accountId: string;
  error: string | null;
  onChange: (id: string) => void;
};

function AccountField({ isOnlyOne, userType, accountId, error, onChange }: AccountFieldProps) {
  const accounts = useResource(() => window.callkey.listAccounts());
  return (
    <Loadable resource={accounts} what="the accounts">
      {(view) => (
        <Field label={userType === 'account' ? 'Account' : 'Tied to'} error={error}>
          {(binding) => (
            <select
              {...binding}
              value={isOnlyOne ? view.accounts[0]?.id : accountId}
              onChange={({ currentTarget }) => onChange(currentTarget.value)}
            >
              {!isOnlyOne && <option value="">{userType === 'account' ? 'Choose …' : 'No account: all beneath the partner'}</option>}
              {view.accounts.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
    </Loadable>
  );
}
