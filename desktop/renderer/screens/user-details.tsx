import type { UserView } from '#contract/console.ts';
import { Details, Facts } from '../components/details.tsx';
import { Moment } from '../components/time.tsx';
import { formatNumber } from '../state/format.ts';
import { membershipOf, userTypeLabels } from '../state/labels.ts';

type UserDetailsProps = { user: UserView; isYou: boolean; onReset: () => void; onDelete: () => void; onClose: () => void };

/** All about one user, and what can be done about them. */
export function UserDetails({ user, isYou, onReset, onDelete, onClose }: UserDetailsProps) {
  const place = membershipOf(user);
  return (
    <Details title={user.name} badge={<span class="badge">{userTypeLabels[user.userType]}</span>} onClose={onClose}>
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
      {isYou ? (
        <p class="hint">This is your own account. Another administrator can reset your password or delete you.</p>
      ) : (
        <div class="actions at-start">
          <button type="button" onClick={onReset}>
            Reset password…
          </button>
          <button type="button" class="warns" onClick={onDelete}>
            Delete…
          </button>
        </div>
      )}
    </Details>
  );
}
