import type { UserView } from '#contract/console.ts';
import { Details, Facts } from '../../components/details.tsx';
import { Moment } from '../../components/time.tsx';
import { formatNumber } from '../../state/format/format.ts';
import { formatMembership, userTypeLabels } from '../../state/format/labels.ts';

type UserDetailsProps = {
  user: UserView;
  isYou: boolean;
  /** Null if the viewer can't see any keys. */
  onShowKeys: (() => void) | null;
  onEdit: () => void;
  onDisable: () => void;
  onReset: () => void;
  onDelete: () => void;
  onClose: () => void;
};

/** Everything about a user, and the actions for them. */
export function UserDetails({ user, isYou, onShowKeys, onEdit, onDisable, onReset, onDelete, onClose }: UserDetailsProps) {
  const place = formatMembership(user);
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
      <Facts
        facts={[
          ['Email', <bdi key="email">{user.email}</bdi>],
          ...(place === '' ? [] : ([['Belongs to', <bdi key="place">{place}</bdi>]] as const)),
          ['API keys', formatNumber(user.apiKeys)],
          ['Last sign-in', user.lastSignInAt === null ? 'Never' : <Moment key="seen" at={user.lastSignInAt} />],
          ...(user.disabledAt === null ? [] : ([['Disabled', <Moment key="disabled" at={user.disabledAt} />]] as const)),
          ['Created', <Moment key="created" at={user.createdAt} />],
        ]}
      />
      <div class="actions at-start">
        {onShowKeys && user.apiKeys > 0 && (
          <button type="button" onClick={onShowKeys}>
            Show API keys
          </button>
        )}
        <button type="button" onClick={onEdit}>
          Edit…
        </button>
        {!isYou && (
          <>
            <button type="button" onClick={onReset}>
              Reset password…
            </button>
            <button type="button" class={user.disabledAt === null ? 'warns' : undefined} onClick={onDisable}>
              {user.disabledAt === null ? 'Disable…' : 'Enable…'}
            </button>
            <button type="button" class="warns" onClick={onDelete}>
              Delete…
            </button>
          </>
        )}
      </div>
      {isYou && <p class="hint">This is your own account. Another administrator can reset your password, or disable or delete you.</p>}
    </Details>
  );
}
