import type { UserView } from '#contract/console/users.ts';
import { foldText } from '#contract/text/text.ts';
import { oneOf, sortBy, text, viewFields } from './filters.ts';
import { type Sort, type SortValue, sorted } from './format.ts';
import { formatMembership, userTypeLabels } from './labels.ts';

export type UserColumn = 'name' | 'email' | 'type' | 'place' | 'keys' | 'seen';
/** @property show which users to list; `away` for those who haven't signed in for 90 days */
export type UserListView = { search: string; show: 'all' | 'away'; sort: Sort<UserColumn>; open: string };

export const userListView = viewFields<UserListView>('users', ['open'], {
  open: text(),
  search: text(),
  show: oneOf(['all', 'away'], 'all'),
  sort: sortBy(['name', 'email', 'type', 'place', 'keys', 'seen'], { column: 'name', isDescending: false }),
});

const sortValues: Readonly<Record<UserColumn, (user: UserView) => SortValue>> = {
  name: ({ name }) => name,
  email: ({ email }) => email,
  type: ({ userType }) => userTypeLabels[userType],
  place: formatMembership,
  keys: ({ apiKeys }) => apiKeys,
  seen: ({ lastSignInAt }) => (lastSignInAt === null ? null : Date.parse(lastSignInAt)),
};

/** Returns the users whose name or email address contains the search text, in the chosen order. */
export function usersInView(users: readonly UserView[], { search, sort }: UserListView): UserView[] {
  const query = foldText(search.trim());
  const matches = users.filter(({ name, email }) => foldText(`${name} ${email}`).includes(query));
  return sorted(matches, sortValues[sort.column], sort.isDescending);
}

export const userCsvHead = ['Name', 'Email', 'Type', 'Belongs to', 'API keys', 'Last sign-in', 'Disabled', 'Created'] as const;

export function userCsvRow(user: UserView): string[] {
  const { name, email, userType, apiKeys, lastSignInAt, disabledAt, createdAt } = user;
  return [
    name,
    email,
    userTypeLabels[userType],
    formatMembership(user),
    String(apiKeys),
    lastSignInAt ?? 'Never',
    disabledAt ?? '',
    createdAt,
  ];
}
