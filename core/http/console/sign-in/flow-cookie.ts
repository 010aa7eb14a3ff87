import { hash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '#contract/text/json.ts';
import type { Context, HttpDeps } from '../../middleware/context.ts';
import { CoreCookies, publicPath } from '../../middleware/core-cookies.ts';

const app = z.object({ port: z.number(), challenge: z.string() });

/**
 * The data that a browser stores between two steps of signing in with the provider: until the provider redirects the browser back and, if
 * the app is signing in, until the user has confirmed that. `expiresAt` is in ms.
 */
const flowSchema = z.discriminatedUnion('step', [
  z.object({
    step: z.literal('provider'),
    state: z.string(),
    nonce: z.string(),
    verifier: z.string(),
    app: app.nullable(),
    /** The cookie of a known device. The callback doesn't get it, because browsers send it only to pages of the same site. */
    device: z.string().optional(),
    expiresAt: z.number(),
  }),
  z.object({
    step: z.literal('confirm'),
    state: z.string(),
    /** The code that signs the app in. It's created when the user confirms that. */
    code: z.string(),
    userId: z.string(),
    issuer: z.string(),
    subject: z.string(),
    signInVersion: z.string(),
    app,
    expiresAt: z.number(),
  }),
]);
export type Flow = z.infer<typeof flowSchema>;

/** The maximum number of sign-ins that a browser can have in progress. A new one replaces the oldest, because headers have a limit. */
const maxFlows = 5;

const start = 'callkey_oidc_';

/**
 * Stores a flow in a cookie of its own, because several tabs may sign in at the same time. Browsers send the cookies only to the paths of
 * this sign-in. Unlike the session's cookie, they're also sent when the provider redirects to these paths.
 */
export function keepFlow(ctx: Context, deps: HttpDeps, flow: Flow): void {
  const cookies = openCookies(ctx, deps);
  const name = cookieName(flow.state);
  const others = listFlows(ctx, deps).filter((other) => cookieName(other.state) !== name);
  for (const { state } of others.slice(maxFlows - 1)) cookies.set(cookieName(state), null);
  const value = Buffer.from(JSON.stringify(flow)).toString('base64url');
  cookies.set(name, value, { maxAge: flow.expiresAt - deps.ports.clock.now(), sameSite: 'lax' });
}

export function dropFlow(ctx: Context, deps: HttpDeps, { state }: Flow): void {
  openCookies(ctx, deps).set(cookieName(state), null, { sameSite: 'lax' });
}

/** Returns the flow with this state; null if there's none, or it's too old. */
export function readFlow(ctx: Context, deps: HttpDeps, state: string): Flow | null {
  return listFlows(ctx, deps).find((flow) => flow.state === state) ?? null;
}

/** Returns the browser's flows, newest first. */
export function listFlows(ctx: Context, deps: HttpDeps): Flow[] {
  const cookies = openCookies(ctx, deps);
  const flows = cookies.list(start).flatMap((name) => {
    const value = cookies.get(name, { signed: true }) ?? '';
    const flow = flowSchema.safeParse(parseJson(Buffer.from(value, 'base64url').toString())).data;
    return flow && flow.expiresAt >= deps.ports.clock.now() ? [flow] : [];
  });
  return flows.toSorted((a, b) => b.expiresAt - a.expiresAt);
}

function cookieName(state: string): string {
  return `${start}${nameFlow(state)}`;
}

/** Returns a flow's name, which isn't a secret. */
export function nameFlow(state: string): string {
  return hash('sha256', state).slice(0, 8);
}

function openCookies(ctx: Context, { publicUrl, sessionSecrets }: HttpDeps): CoreCookies {
  return new CoreCookies(ctx, sessionSecrets, { secure: publicUrl.startsWith('https:'), path: `${publicPath(publicUrl)}/console/oidc` });
}
