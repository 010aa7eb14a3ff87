import { activityRoutes } from './activity.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { callRoutes } from './calls.ts';
import { directoryRoutes } from './directory.ts';
import { protectionRoutes } from './protection.ts';
import { sessionRoutes } from './sessions.ts';
import { signInRoutes } from './sign-in.ts';
import { userRoutes } from './users.ts';

/** The routes that the console uses. */
export const consoleRoutes = {
  ...sessionRoutes,
  ...signInRoutes,
  ...apiKeyRoutes,
  ...directoryRoutes,
  ...callRoutes,
  ...userRoutes,
  ...activityRoutes,
  ...protectionRoutes,
};
export type ConsoleRoutes = typeof consoleRoutes;
