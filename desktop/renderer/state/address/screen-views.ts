import type { ScreenName } from '../../../screens.ts';
import { activityView } from '../../screens/activity/activity-list.ts';
import { keyListView } from '../../screens/api-keys/list/key-list-view.ts';
import { callsView } from '../../screens/calls/calls-view.ts';
import { protectionView } from '../../screens/protection/protection-view.ts';
import { userListView } from '../../screens/users/user-list-view.ts';
import { directoryView } from '../directory.ts';

/** The parts of each screen's view that its address contains. The compiler reports a missing screen. */
export const screenViews = {
  'api-keys': keyListView,
  calls: callsView,
  users: userListView,
  activity: activityView,
  directory: directoryView,
  protection: protectionView,
} as const satisfies Record<ScreenName, unknown>;

export type ScreenView<Name extends ScreenName> = (typeof screenViews)[Name]['initial'];
