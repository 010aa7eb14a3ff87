import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { DeletionView, UserView } from '#contract/console/users.ts';
import { Details, Facts } from '../../components/details.tsx';
import { useResource } from '../../components/loadable.tsx';
import { Moment } from '../../components/time.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { describeFailure, isNotFound } from '../../state/format/failure-text.ts';
import { formatNumber } from '../../state/format/format.ts';
import { formatMembership, userTypeLabels } from '../../state/format/labels.ts';
import { viewerAsOwner } from '../api-keys/list/key-list.ts';

type UserDetailsProps = {
  user: UserView;
  isYou: boolean;
  canSeeKeys: boolean;
  onEdit: () => void;
  onDisable: () => void;
  onReset: () => void;
  onResetFactor: () => void;
  onUnlink: () => void;
  onDelete: () => void;
  onClose: () => void;
};

/** Shows everything about a user, and the actions for them. */
export function UserDetails({
  user,
  isYou,
  canSeeKeys,
  onEdit,
  onDisable,
  onReset,
  onResetFactor,
  onUnlink,
  onDelete,
  onClose,
}: UserDetailsProps) {
  const membership = formatMembership(user);
  return (
    <Details
      title={user.name}
      badge={
        <span class="line">
          <span class="badge">{userTypeLabels[user.userType]}</span> {user.disabledAt !== null && <span class="badge warn">Disabled</span>}
        </span>
      }
      onClose={onClose}
    >
      <div class="actions at-start">
        {canSeeKeys && user.apiKeys > 0 && (
          <a class="button" href={formatAddress('api-keys', { owner: isYou ? viewerAsOwner : user.email })}>
            Show API keys
          </a>
        )}
        <a class="button" href={formatAddress('activity', { actor: user.id })}>
          Show activity
        </a>
        <button type="button" onClick={onEdit}>
          Edit…
        </button>
        {!isYou && (
          <>
            <button type="button" onClick={onReset}>
              Reset password…
            </button>
            {user.secondFactor && (
              <button type="button" onClick={onResetFactor}>
                Reset second factor…
              </button>
            )}
            {user.link && (
              <button type="button" onClick={onUnlink}>
                Unlink…
              </button>
            )}
            <button type="button" class={user.disabledAt === null ? 'warns' : undefined} onClick={onDisable}>
              {user.disabledAt === null ? 'Disable…' : 'Enable…'}
            </button>
            <button type="button" class="warns" onClick={onDelete}>
              Delete…
            </button>
          </>
        )}
      </div>
      <Facts
        facts={[
          ['Email', <bdi key="email">{user.email}</bdi>],
          ...(membership === '' ? [] : ([['Belongs to', <bdi key="membership">{membership}</bdi>]] as const)),
          ['API keys', formatNumber(user.apiKeys)],
          ['Last sign-in', user.lastSignInAt === null ? 'Never' : <Moment key="seen" at={user.lastSignInAt} />],
          ['Second factor', user.secondFactor ? 'On' : 'Off'],
          ...(user.link === null ? [] : ([['Linked to', <bdi key="link">{user.link.issuer}</bdi>]] as const)),
          ...(user.disabledAt === null ? [] : ([['Disabled', <Moment key="disabled" at={user.disabledAt} />]] as const)),
          ['Created', <Moment key="created" at={user.createdAt} />],
        ]}
      />
      {isYou && <p class="hint">This is your own account. Another administrator can reset your password, or disable or delete you.</p>}
    </Details>
  );
}

type OpenUserProps = {
  id: string;
  /** The user, if they are in the list. */
  listed: UserView | undefined;
  /** When the list was last loaded. Whenever it's loaded, this user is loaded again as well. */
  listLoadedAt: number;
  onClose: () => void;
  children: (user: UserView) => ComponentChildren;
};

/** Finds the user that an address names. If there are many users, the list may not include this one. */
export function OpenUser({ id, listed, listLoadedAt, onClose, children }: OpenUserProps) {
  const load = async () => (listed ? { ok: true as const, value: null } : window.callkey.request('previewDeletion', { id }));
  const resource = useResource<DeletionView | null>(load, listed ? 'listed' : id);
  const { value, failure } = resource.state.value;
  useEffect(() => {
    if (!listed) void resource.refreshIfOlder(0);
  }, [resource, listLoadedAt]);
  if (listed) return <>{children(listed)}</>;
  if (value) return <>{children(value.user)}</>;
  if (!failure) return null;
  return (
    <Details title="User" onClose={onClose}>
      <p>{isNotFound(failure) ? 'This user was deleted, or you don’t have access to them.' : describeFailure(failure)}</p>
    </Details>
  );
}
