import { useState } from 'preact/hooks';
import { type Named, type UserType, userTypes } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { DeletionView, UserView } from '#contract/console/users.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import type { Result } from '../../../ipc.ts';
import { ChooseField, type Matches, type Option } from '../../components/choose.tsx';
import { Confirm, ConfirmDanger } from '../../components/confirm.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { ExportRowsButton } from '../../components/export-buttons.tsx';
import { FormDialog, SelectField, TextField } from '../../components/form.tsx';
import { useIsTaken, useList } from '../../components/list.tsx';
import { type OneTimeSecret, SecretDialog } from '../../components/secret.tsx';
import { ShortTable } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { sum } from '../../state/calls.ts';
import { now, ownZone } from '../../state/clock.ts';
import { type LookedUp, lookUpChange, lookUpGone } from '../../state/failure-text.ts';
import { formatTimestamp, sorted } from '../../state/format.ts';
import { userTypeLabels } from '../../state/labels.ts';
import { mapped } from '../../state/list.ts';
import { server } from '../../state/session.ts';

/** Returns the types that the viewer can create: none has a wider scope than theirs. Without a selected tenancy, staff create staff. */
function typesFor({ viewer, tenancy }: SessionView): UserType[] {
  const isService = viewer.userType === 'staff' && !tenancy;
  return userTypes.filter((type) => (type === 'staff') === isService);
}

type CreateUserProps = { session: SessionView; onCreated: (user: UserView, password: string | null) => void; onClose: () => void };

export function CreateUser({ session, onCreated, onClose }: CreateUserProps) {
  const types = typesFor(session);
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [userType, setType] = useState<UserType>(types[0] ?? 'account');
  const [account, setAccount] = useState<Named | null>(null);
  const input = { name, email, userType, ...(account && { accountId: account.id }) };
  return (
    <FormDialog
      title="Create user"
      asksCode
      act={(code) => window.callkey.request('createUser', { ...input, ...code })}
      onDone={({ user, password }) => onCreated(user, password)}
      lost="The server may still have created the user. Check the list, and reset the user’s password if they’re there."
      verb="Create user"
      verbing="Creating…"
      onClose={onClose}
    >
      <UserNameField value={name} onInput={setName} />
      <TextField name="email" label="Email" type="email" value={email} onInput={setEmail} />
      <SelectField
        name="userType"
        label="Type"
        hint={typeHints[userType]}
        value={userType}
        options={types.map((type) => [type, userTypeLabels[type]])}
        onChange={(type) => {
          setType(type);
          setAccount(null);
        }}
      />
      {userType !== 'staff' && (
        <AccountField isOnlyOne={isWithinOneAccount(session)} userType={userType} chosen={account} onChoose={setAccount} />
      )}
    </FormDialog>
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

const findUsers = (search: string) => mapped(window.callkey.request('listUsers', { search, cursor: null }), ({ users }) => users);

/** @property id of the user who gets the name, if they already exist */
type UserNameFieldProps = { value: string; id?: string; onInput: (name: string) => void };

/** Shows the name of a user, and warns if another one has it, because a list of keys shows only their names. */
function UserNameField({ value, id, onInput }: UserNameFieldProps) {
  const warning = useIsTaken(value, findUsers, '', id) ? 'A user with this name already exists.' : null;
  return <TextField name="name" label="Name" warning={warning} value={value} onInput={onInput} autofocus />;
}

type AccountFieldProps = {
  /** Whether the scope has only one account, which is then chosen already. */
  isOnlyOne: boolean;
  userType: UserType;
  chosen: Named | null;
  onChoose: (account: Named | null) => void;
};

function AccountField({ userType, ...choice }: AccountFieldProps) {
  const isInAccount = userType === 'account';
  return (
    <ChooseField
      name="accountId"
      label={isInAccount ? 'Account' : 'Limited to'}
      noun="account"
      find={findAccounts}
      none={isInAccount ? 'Choose…' : 'No limit: all of the partner’s accounts'}
      {...choice}
    />
  );
}

function findAccounts(search: string): Promise<Result<Matches<Option>>> {
  return mapped(window.callkey.request('listAccounts', { search, cursor: null }), ({ accounts, nextCursor }) => ({
    options: accounts.map(({ id, name }) => ({ id, name, caption: '' })),
    isAll: nextCursor === null,
  }));
}

type SharePasswordProps = { user: UserView; password: OneTimeSecret; isNew: boolean; onClose: () => void };

export function SharePassword({ user, password, isNew, onClose }: SharePasswordProps) {
  const invitation = buildInvitation(user, server.value);
  return (
    <SecretDialog
      title="Share the password"
      lead={
        <>
          <strong>{user.name}</strong> signs in with <strong>{user.email}</strong> and this password, then chooses a new one. This is the
          only time you’ll see it.
        </>
      }
      label="One-time password"
      secret={password}
      lost="This password can’t be shown again. To get a new one, reset the password."
      onClose={onClose}
    >
      {isNew && (
        <div class="field">
          <div class="row between label-row">
            <h3>Invitation</h3>
            <CopyButton text={invitation} noun="invitation" />
          </div>
          <pre>{invitation}</pre>
          <p class="hint">The password isn’t included. Send it separately.</p>
        </div>
      )}
    </SecretDialog>
  );
}

function buildInvitation({ name, email }: Pick<UserView, 'name' | 'email'>, address: string): string {
  return `Hello ${name},

You can now sign in to Callkey:

${address}
Email: ${email}

You’ll get a one-time password separately. When you sign in, you’ll choose your own.`;
}

export type ChangeUserDialog = { name: 'edit' | 'disable' | 'reset-password' | 'reset-second-factor' | 'unlink'; user: UserView };

type ChangeUserProps = ChangeUserDialog & {
  session: SessionView;
  /** Receives the one-time password of a user whose password was reset. */
  onReset: (password: string) => void;
  /** @param text what was done */
  onDone: (text: string) => void;
  onClose: () => void;
};

export function ChangeUser({ name: what, user, session, onReset, onDone, onClose }: ChangeUserProps) {
  const { id, name } = user;
  const person = <strong>{name}</strong>;
  switch (what) {
    case 'edit':
      return <EditUser {...{ user, session, onDone, onClose }} />;
    case 'disable':
      return <DisableUser {...{ user, onDone, onClose }} />;
    case 'reset-password':
      return (
        <Confirm
          title="Reset password?"
          lead={
            <>{person} will be signed out everywhere and will need the one-time password that you give them. Their API keys keep working.</>
          }
          verb="Reset password"
          verbing="Resetting…"
          act={(code) => window.callkey.request('resetPassword', { id, ...code })}
          lost="If the server has reset the password, no one has seen the new one. Reset it again."
          onDone={({ password }) => onReset(password)}
          onClose={onClose}
        />
      );
    case 'reset-second-factor':
      return (
        <Confirm
          title="Reset second factor?"
          lead={
            <>
              Make sure that it’s really {person} who’s asking. They’ll be signed out everywhere, and can then sign in with just their
              password until they set up a second factor again.
            </>
          }
          verb="Reset second factor"
          verbing="Resetting…"
          act={(code) => window.callkey.request('resetSecondFactor', { id, ...code })}
          lookUp={() => lookUpUser(id, (found) => !found.secondFactor)}
          onDone={() => onDone(`The second factor of ${name} was reset.`)}
          onClose={onClose}
        />
      );
    case 'unlink':
      return (
        <Confirm
          title="Unlink from the provider?"
          lead={
            <>
              The sessions of {person} will end. The next person who signs in there with this user’s email address will be linked instead.
            </>
          }
          verb="Unlink"
          verbing="Unlinking…"
          act={(code) => window.callkey.request('unlinkUser', { id, ...code })}
          lookUp={() => lookUpUser(id, (found) => !found.link)}
          onDone={() => onDone(`${name} was unlinked.`)}
          onClose={onClose}
        />
      );
  }
}

function lookUpUser(id: string, isDone: (user: UserView) => boolean): Promise<LookedUp<{ user: UserView }>> {
  return lookUpChange<{ user: UserView }>(window.callkey.request('previewDeletion', { id, cursor: null }), ({ user }) => isDone(user));
}

type UserDialogProps = Pick<ChangeUserProps, 'user' | 'onDone' | 'onClose'>;

function EditUser({ user, session, onDone, onClose }: UserDialogProps & Pick<ChangeUserProps, 'session'>) {
  const [name, setName] = useState(user.name);
  const [account, setAccount] = useState<Named | null>(user.account);
  const canMove = user.userType !== 'staff' && user.id !== session.viewer.id && !isWithinOneAccount(session);
  const hasMoved = canMove && account?.id !== user.account?.id;
  // Sends only what the user has changed, because someone else may have changed other fields in the meantime.
  const change = { ...(name === user.name ? {} : { name }), ...(hasMoved ? { accountId: account?.id ?? null } : {}) };
  return (
    <FormDialog
      title="Edit user"
      asksCode={hasMoved}
      act={async (code): Promise<Result<{ user: UserView } | null>> =>
        Object.keys(change).length === 0
          ? { ok: true, value: null }
          : window.callkey.request('changeUser', { id: user.id, ...change, ...code })
      }
      lookUp={() => lookUpUser(user.id, (found) => found.name === name.trim() && (!hasMoved || found.account?.id === account?.id))}
      onDone={(changed) => (changed ? onDone(`User ${changed.user.name} was changed.`) : onClose())}
      verb="Save"
      verbing="Saving…"
      onClose={onClose}
    >
      <UserNameField value={name} id={user.id} onInput={setName} />
      {canMove && <AccountField isOnlyOne={false} userType={user.userType} chosen={account} onChoose={setAccount} />}
      {hasMoved && (
        <p class="hint" role="status">
          They’ll have to sign in again. Their API keys will move with them immediately.
        </p>
      )}
    </FormDialog>
  );
}

function DisableUser({ user: { id, name, email, apiKeys, disabledAt }, onDone, onClose }: UserDialogProps) {
  const isDisabled = disabledAt !== null;
  const keys = counted(apiKeys, 'API key');
  return (
    <Confirm
      title={isDisabled ? 'Enable user?' : 'Disable user?'}
      lead={
        isDisabled ? (
          <>
            <strong>{name}</strong> ({email}) will be able to sign in, and their {keys} will work again.
          </>
        ) : (
          <>
            <strong>{name}</strong> ({email}) will be signed out everywhere, and their {keys} will stop working immediately. Calls already
            queued will still be dialed. You can enable the user again.
          </>
        )
      }
      verb={isDisabled ? 'Enable' : 'Disable'}
      verbing={isDisabled ? 'Enabling…' : 'Disabling…'}
      asksCode={isDisabled}
      act={(code) => window.callkey.request('changeUser', { id, disabled: !isDisabled, ...code })}
      lookUp={() => lookUpUser(id, (found) => (found.disabledAt !== null) === !isDisabled)}
      onDone={({ user }) => onDone(`User ${user.name} was ${user.disabledAt === null ? 'enabled' : 'disabled'}.`)}
      onClose={onClose}
    />
  );
}

/** Beyond this many keys, the user must confirm by typing the email address. */
const confirmAbove = 10;
/** A key used within this many days is probably still in use. */
const recentDays = 7;
/** Reserve the space that the rows will need, up to the height of the table. */
const placeholders = Array.from({ length: 8 }, () => ['', '', '']);

type DeleteUserProps = { user: UserView; onDeleted: () => void; onAlreadyDeleted: () => void; onClose: () => void };

/** @property apiKeys null before the core has listed them; `sessions` likewise */
type Preview = Omit<DeletionView, 'apiKeys' | 'sessions'> & { apiKeys: DeletionView['apiKeys'] | null; sessions: number | null };

export function DeleteUser({ user, onDeleted, onAlreadyDeleted, onClose }: DeleteUserProps) {
  // Until the preview arrives, uses the number of keys from the list, so that nothing in the dialog moves.
  const preview = useList<Preview>({
    key: `deletion/${user.id}`,
    every: null,
    load: () => window.callkey.request('previewDeletion', { id: user.id }),
    initial: { user, apiKeys: null, nextCursor: null, sessions: null },
  });
  const { apiKeys: keys } = preview.state.value.view?.user ?? user;
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
        nextCursor === null && apiKeys ? sum(apiKeys.map(({ queuedCalls }) => queuedCalls)) : null
      }
      confirmation={
        keys > confirmAbove ? { label: `Type ${user.email} to delete this user and ${counted(keys, 'key')}`, text: user.email } : null
      }
      verb="Delete"
      verbing="Deleting…"
      act={(cancelQueuedCalls) =>
        window.callkey.request('deleteUser', { id: user.id, cancelQueuedCalls: cancelQueuedCalls ? 'true' : null })
      }
      lookUp={() => lookUpGone(window.callkey.request('previewDeletion', { id: user.id }))}
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
          <div class="row">
            <ExportRowsButton name="api-keys" file={keysFile} head={keyHead} load={(cursor) => loadKeys(user.id, cursor)} />
          </div>
          <ShortTable
            head={[['Key'], ['Last used', 'day'], ['Calls not yet dialed', 'moment']]}
            rows={apiKeys ? toRows(apiKeys) : placeholders.slice(0, user.apiKeys)}
          />
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
      <strong>{counted(user.apiKeys - expired, 'API key')} will stop working</strong> immediately
      {expired > 0 && `; ${formatCount(expired)} ${expired === 1 ? 'has' : 'have'} already expired`}.{' '}
      {nextCursor !== null && `The table lists the newest ${formatCount(apiKeys.length)}. Of these, `}
      <RecentlyUsed isStart={nextCursor === null} lastUsed={apiKeys.map(({ lastUsedAt }) => lastUsedAt)} />
    </>
  );
}

function toRows(apiKeys: DeletionView['apiKeys']) {
  return sorted(apiKeys, ({ lastUsedAt }) => lastUsedAt && Date.parse(lastUsedAt), true).map(({ name, lastUsedAt, queuedCalls }) => [
    name,
    lastUsedAt === null ? <span class="faint">Never</span> : <Time at={lastUsedAt} />,
    queuedCalls,
  ]);
}

function describeSessions(sessions: number): string {
  if (sessions === 0) return 'They aren’t currently signed in.';
  return `They’re currently signed in${sessions === 1 ? '' : ` (${counted(sessions, 'session')})`}.`;
}

const keysFile = 'keys-of-user.csv';
const keyHead = ['ID', 'Name', 'Last used', 'Calls not yet dialed'] as const;

const loadKeys = (id: string, cursor: string | null) =>
  mapped(window.callkey.request('previewDeletion', { id, cursor }), ({ apiKeys, nextCursor }) => ({
    rows: apiKeys.map(({ id: keyId, name, lastUsedAt, queuedCalls }) => [
      keyId,
      name,
      lastUsedAt === null ? 'Never' : formatTimestamp(lastUsedAt, ownZone.peek()),
      String(queuedCalls),
    ]),
    nextCursor,
  }));

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
      {lastUsed.length === 1 ? 'It was' : counted(count, 'was', 'were')} used in the last {recentDays} days. If something still depends on{' '}
      {count === 1 ? 'it' : 'them'}, replace {count === 1 ? 'it' : 'them'} first.
    </>
  );
}
