import { useState } from 'preact/hooks';
import { type Named, type UserType, userTypes } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { UserView } from '#contract/console/users.ts';
import { useCode } from '../../components/forms/confirm-with-code.tsx';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Field, FormError } from '../../components/forms/field.tsx';
import { FormActions } from '../../components/forms/form-actions.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useDebounced } from '../../components/forms/use-debounced.ts';
import { useIsTaken } from '../../components/forms/use-is-taken.ts';
import { Loadable, useResource } from '../../components/loadable.tsx';
import { typingMs } from '../../components/use-pages.ts';
import { describeFailure, fieldError, generalError, isInDoubt } from '../../state/format/failure-text.ts';
import { userTypeLabels } from '../../state/format/labels.ts';
import { mapped } from '../../state/loading/resource.ts';

type CreateUserProps = { session: SessionView; onCreated: (user: UserView, password: string | null) => void; onClose: () => void };

const findUsers = (search: string) => mapped(window.callkey.request('listUsers', { search, cursor: null }), ({ users }) => users);

/** Warns that a user with this name already exists: a list of keys shows only their names. @param id of the user who gets it */
export function useNameWarning(name: string, id?: string): string | null {
  return useIsTaken(name, findUsers, '', id) ? 'A user with this name already exists.' : null;
}

/**
 * Returns the user types that the viewer can create. None has a wider scope than the viewer. Without a selected tenancy, staff create
 * staff.
 */
function typesFor({ viewer, tenancy }: SessionView): UserType[] {
  const isService = viewer.userType === 'staff' && !tenancy;
  return userTypes.filter((type) => (type === 'staff') === isService);
}

export function CreateUser({ session, onCreated, onClose }: CreateUserProps) {
  const types = typesFor(session);
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [userType, setType] = useState<UserType>(types[0] ?? 'account');
  const [accountId, setAccount] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const code = useCode(failure);
  const warning = useNameWarning(name);
  const close = unlessBusy(onClose);

  function submit(event: Event): void {
    event.preventDefault();
    const input = { name, email, userType, ...(accountId === '' ? {} : { accountId }), ...code.fields };
    void run(
      () => window.callkey.request('createUser', input),
      ({ user, password }) => onCreated(user, password),
      () => void window.callkey.dismissSecret(),
    );
  }

  return (
    <Dialog title="Create user" onDismiss={close}>
      <form ref={form} onSubmit={submit} noValidate>
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
        <TextField label="Email" error={fieldError(failure, 'email')} type="email" autocomplete="off" value={email} onInput={setEmail} />
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
                  {userTypeLabels[type]}
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
        {code.field}
        <FormError
          text={
            failure && isInDoubt(failure)
              ? `${describeFailure(failure)} The server may still have created the user. Check the list, and reset the user’s password if they’re there.`
              : generalError(failure, ['name', 'email', 'userType', 'accountId', 'code'])
          }
        />
        <FormActions verb="Create user" verbing="Creating…" isBusy={isBusy} onCancel={close} />
      </form>
    </Dialog>
  );
}

const typeHints: Readonly<Record<UserType, string>> = {
  account: 'Works in one account and sees only their own keys.',
  partner: 'Sees the keys and users in all of the partner’s accounts, or only in the account they’re limited to.',
  staff: 'Sees the account or partner that they select.',
};

/** Whether the scope is one account. If so, every new user belongs to it. */
export function isWithinOneAccount({ viewer, tenancy }: SessionView): boolean {
  return viewer.userType === 'staff' ? tenancy?.kind === 'account' : viewer.account !== null;
}

type AccountFieldProps = {
  isOnlyOne: boolean;
  userType: UserType;
  accountId: string;
  /** The account that's shown until another one is chosen. */
  current?: Named | null;
  error: string | null;
  onChange: (id: string) => void;
};

export function AccountField({ isOnlyOne, userType, accountId, current = null, error, onChange }: AccountFieldProps) {
  const [search, setSearch] = useState('');
  const debouncedSearch = useDebounced(search.trim(), typingMs);
  const accounts = useResource(() => window.callkey.request('listAccounts', { search: debouncedSearch, cursor: null }), debouncedSearch);
  const [chosen, setChosen] = useState<Named | null>(current);
  const choose = (options: readonly Named[], id: string) => {
    setChosen(options.find((option) => option.id === id) ?? null);
    onChange(id);
  };
  return (
    <Loadable resource={accounts} noun="accounts">
      {(view) => {
        // The chosen account is still offered while the user searches for others.
        const isElsewhere = chosen !== null && !view.accounts.some(({ id }) => id === chosen.id);
        const options = isElsewhere ? [chosen, ...view.accounts] : view.accounts;
        return (
          <>
            {(search !== '' || view.nextCursor !== null) && (
              <TextField label="Search accounts" error={null} type="text" autocomplete="off" value={search} onInput={setSearch} />
            )}
            <Field label={userType === 'account' ? 'Account' : 'Limited to'} error={error}>
              {(binding) => (
                <select
                  {...binding}
                  value={isOnlyOne ? view.accounts[0]?.id : accountId}
                  onChange={({ currentTarget }) => choose(options, currentTarget.value)}
                >
                  {!isOnlyOne && <option value="">{userType === 'account' ? 'Choose…' : 'No limit: all of the partner’s accounts'}</option>}
                  {options.map(({ id, name }) => (
                    <option key={id} value={id}>
                      {name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </>
        );
      }}
    </Loadable>
  );
}
