import { onDemandRoutes } from './calls/calls.ts';
import { dialerRoutes } from './calls/dialer.ts';
import { activityRoutes } from './console/activity.ts';
import { apiKeyRoutes } from './console/api-keys.ts';
import { callRoutes } from './console/calls.ts';
import { directoryRoutes } from './console/directory.ts';
import { sessionRoutes } from './console/session.ts';
import { signInRoutes } from './console/sign-in.ts';
import { userRoutes } from './console/users.ts';
import { dialingRoutes } from './protection/dialing.ts';
import { protectionRoutes } from './protection/protection.ts';

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
  ...dialingRoutes,
};
export type ConsoleRoutes = typeof consoleRoutes;

/** Every route of the public listener. The router, validation, OpenAPI and the console's client use this table. */
export const routes = { ...onDemandRoutes, ...consoleRoutes, ...dialerRoutes };
