import { activityRoutes } from './activity.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { callRoutes } from './calls.ts';
import { directoryRoutes } from './directory.ts';
import { sessionRoutes } from './sessions.ts';
import { userRoutes } from './users.ts';

/** The routes that the console uses. */
export const consoleRoutes = {
  ...sessionRoutes,
  ...apiKeyRoutes,
  ...directoryRoutes,
  ...callRoutes,
  ...userRoutes,
  ...activityRoutes,
};
export type ConsoleRoutes = typeof consoleRoutes;
