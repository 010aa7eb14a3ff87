import { useState } from 'preact/hooks';
import { type Named, type UserType, userTypes } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { DeletionView, UserView } from '#contract/console/users.ts';
import { ConfirmDanger, ConfirmWithCode, useCode } from '../../components/confirm.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ExportPagesButton } from '../../components/export-buttons.tsx';
import { Field, FormActions, FormError, TextField, useAction } from '../../components/form.tsx';
import { Loadable, typingMs, useDebounced, useIsTaken, useResource } from '../../components/list.tsx';
import { Clip } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { announce } from '../../state/announcement.ts';
import { now } from '../../state/clock.ts';
import { describeFailure, fieldError, generalError, isInDoubt } from '../../state/failure-text.ts';
import { formatNumber, pluralize, sorted } from '../../state/format.ts';
import { userTypeLabels } from '../../state/labels.ts';
import { mapped } from '../../state/list.ts';
import { server } from '../../state/session.ts';

type CreateUserProps = { session: SessionView; onCreated: (user: UserView, password: string | null) => void; onClose: () => void };

const findUsers = (search: string) => mapped(window.callkey.request('listUsers', { search, cursor: null }), ({ users }) => users);

/** Warns that a user with this name already exists: a list of keys shows only their names. @param id of the user who gets it */
function useNameWarning(name: string, id?: string): string | null {
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
function isWithinOneAccount({ viewer, tenancy }: SessionView): boolean {
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

function AccountField({ isOnlyOne, userType, accountId, current = null, error, onChange }: AccountFieldProps) {
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

/** Beyond this many keys, the user must confirm by typing the email address. */
const confirmAbove = 10;
/** A key used within this many days is probably still in use. */
const recentDays = 7;
/** The maximum number of placeholder rows: enough to fill the table, which then scrolls. */
const visibleRows = 8;

type DeleteUserProps = { user: UserView; onDeleted: () => void; onAlreadyDeleted: () => void; onClose: () => void };

/** @property apiKeys null before the core has listed them; `sessions` likewise */
type Preview = Omit<DeletionView, 'apiKeys' | 'sessions'> & { apiKeys: DeletionView['apiKeys'] | null; sessions: number | null };

/** Before deleting a user, shows which keys will stop working and when each was last used. */
export function DeleteUser({ user, onDeleted, onAlreadyDeleted, onClose }: DeleteUserProps) {
  // Until the preview arrives, uses the number of keys from the list, so that nothing in the dialog moves.
  const preview = useResource<Preview>(() => window.callkey.request('previewDeletion', { id: user.id }), '', {
    ...{ user, apiKeys: null, nextCursor: null, sessions: null },
  });
  return (
    <ConfirmDanger
      title={`Delete ${user.name}?`}
      lead={
        <>
          <strong>{user.email}</strong> will be signed out immediately and won’t be able to sign in again. You can’t undo this.
        </>
      }
      isWide
      preview={preview}
      describe={(view) => <DeletionPreview view={view} />}
      countQueuedCalls={({ apiKeys, nextCursor }) =>
        nextCursor === null && apiKeys ? apiKeys.reduce((sum, key) => sum + key.queuedCalls, 0) : null
      }
      toConfirmation={(view) =>
        view.user.apiKeys > confirmAbove
          ? { label: `Type ${user.email} to delete this user and ${pluralize(view.user.apiKeys, 'key')}`, text: user.email }
          : null
      }
      verb="Delete"
      verbing="Deleting…"
      act={(cancelQueuedCalls) =>
        window.callkey.request('deleteUser', { id: user.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null })
      }
      onDone={onDeleted}
      onAlreadyRemoved={onAlreadyDeleted}
      onClose={onClose}
    />
  );
}

function DeletionPreview({ view: { user, apiKeys, nextCursor, sessions } }: { view: Preview }) {
  return (
    <>
      {user.apiKeys === 0 && !apiKeys?.length ? (
        <p>This user has no API keys.</p>
      ) : (
        <>
          <p class="two-lines-high">{apiKeys ? <Effect {...{ user, apiKeys, nextCursor }} /> : 'Loading keys…'}</p>
          <div class="actions at-start">
            <ExportPagesButton name="api-keys" file={keysFile} head={keyHead} load={(cursor) => loadKeys(user.id, cursor)} />
          </div>
          <div class="short-table">
            <table>
              <colgroup>
                <col />
                <col class="day" />
                <col class="moment" />
              </colgroup>
              <thead>
                <tr>
                  <th scope="col">Key</th>
                  <th scope="col">Last used</th>
                  <th scope="col">Calls not yet dialed</th>
                </tr>
              </thead>
              <tbody>{apiKeys ? <KeyRows apiKeys={apiKeys} /> : <PlaceholderRows count={user.apiKeys} />}</tbody>
            </table>
          </div>
        </>
      )}
      <p class="hint">{sessions === null ? 'Loading sessions…' : describeSessions(sessions)}</p>
    </>
  );
}

function Effect({ user, apiKeys, nextCursor }: Pick<DeletionView, 'user' | 'apiKeys' | 'nextCursor'>) {
  // In a long list, only one page is loaded, so expired keys can't be counted.
  const expired = nextCursor === null ? apiKeys.filter((key) => key.expired).length : 0;
  return (
    <>
      <strong>{pluralize(user.apiKeys - expired, 'API key')} will stop working</strong> immediately
      {expired > 0 && `; ${formatNumber(expired)} ${expired === 1 ? 'has' : 'have'} already expired`}.{' '}
      {nextCursor !== null && `The table lists the newest ${formatNumber(apiKeys.length)}. Of these, `}
      <RecentlyUsed isStart={nextCursor === null} lastUsed={apiKeys.map(({ lastUsedAt }) => lastUsedAt)} />
    </>
  );
}

function KeyRows({ apiKeys }: Pick<DeletionView, 'apiKeys'>) {
  return sorted(apiKeys, ({ lastUsedAt }) => lastUsedAt && Date.parse(lastUsedAt), true).map((key) => (
    <tr key={key.id}>
      <th scope="row">
        <Clip>{key.name}</Clip>
      </th>
      <td>{key.lastUsedAt === null ? <span class="faint">Never</span> : <Time at={key.lastUsedAt} />}</td>
      <td>{key.queuedCalls}</td>
    </tr>
  ));
}

/** Reserves the space that the rows will need, up to the height of the table. */
function PlaceholderRows({ count }: { count: number }) {
  return Array.from({ length: Math.min(count, visibleRows) }, (_, row) => (
    <tr key={row}>
      <td colSpan={3} />
    </tr>
  ));
}

function describeSessions(sessions: number): string {
  if (sessions === 0) return 'Not currently signed in.';
  return `Currently signed in${sessions === 1 ? '' : ` (${pluralize(sessions, 'session')})`}.`;
}

const keysFile = 'keys-of-user.csv';
const keyHead = ['ID', 'Name', 'Last used', 'Calls not yet dialed'] as const;

async function loadKeys(id: string, cursor: string | null) {
  const result = await window.callkey.request('previewDeletion', { id, cursor });
  if (!result.ok) return result;
  const { apiKeys, nextCursor } = result.value;
  const rows = apiKeys.map((key) => [key.id, key.name, key.lastUsedAt ?? 'Never', String(key.queuedCalls)]);
  return { ok: true as const, value: { rows, nextCursor } };
}

/** Says whether integrations still depend on these keys. */
function RecentlyUsed({ lastUsed, isStart }: { lastUsed: readonly (string | null)[]; isStart: boolean }) {
  const since = now.value.minus({ days: recentDays }).toMillis();
  const count = lastUsed.filter((at) => at !== null && Date.parse(at) >= since).length;
  if (count === 0)
    return (
      <>
        {lastUsed.length === 1 ? 'It wasn’t' : isStart ? 'None were' : 'none were'} used in the last {recentDays} days.
      </>
    );
  return (
    <>
      {pluralize(count, 'was', 'were')} used in the last {recentDays} days. If something still depends on {count === 1 ? 'it' : 'them'},
      replace {count === 1 ? 'it' : 'them'} first.
    </>
  );
}

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

/** Shows the text of a message to a new user. The password isn't included, because it should be sent separately. */
export function Invitation({ user }: { user: UserView }) {
  const text = buildInvitation(user, server.value);
  return (
    <div class="field">
      <div class="label-row">
        <h3>Invitation</h3>
        <CopyButton text={text} noun="invitation" />
      </div>
      <pre>{text}</pre>
      <p class="hint">The password isn’t included. Send it separately.</p>
    </div>
  );
}

function buildInvitation({ name, email }: Pick<UserView, 'name' | 'email'>, address: string): string {
  return `Hello ${name},

You can now sign in to Callkey:

${address}
Email: ${email}

You’ll get a one-time password separately. When you sign in, you’ll choose your own.`;
}
