import Cookies from 'cookies';
import { z } from 'zod';
import { parseJson } from '#contract/text/json.ts';
import type { Context, HttpDeps } from '../../middleware/context.ts';

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
    userId: z.string(),
    issuer: z.string(),
    subject: z.string(),
    signInVersion: z.string(),
    app,
    expiresAt: z.number(),
  }),
]);
export type Flow = z.infer<typeof flowSchema>;

/**
 * Sets or clears the cookie. It's sent only to the paths of this sign-in. Unlike the session's cookie, it's also sent when the provider
 * redirects to them. Cookies with a path can't have the prefix `__Host-`.
 */
export function keepFlow(ctx: Context, deps: HttpDeps, flow: Flow | null): void {
  const { pathname, protocol } = new URL(deps.publicUrl);
  const path = `${pathname.replace(/\/$/, '')}/console/oidc`;
  const value = flow && Buffer.from(JSON.stringify(flow)).toString('base64url');
  const maxAge = flow ? flow.expiresAt - deps.ports.clock.now() : 0;
  const secure = protocol === 'https:';
  // If there's no value, the library makes the cookie expire.
  openCookies(ctx, deps).set(cookieName(deps), value, { path, maxAge, secure, sameSite: 'lax', httpOnly: true, signed: true });
}

/** Returns the cookie's data; null if there's no cookie, or it's invalid or too old. */
export function readFlow(ctx: Context, deps: HttpDeps): Flow | null {
  const value = openCookies(ctx, deps).get(cookieName(deps), { signed: true });
  if (value === undefined) return null;
  const flow = flowSchema.safeParse(parseJson(Buffer.from(value, 'base64url').toString())).data;
  return flow && flow.expiresAt >= deps.ports.clock.now() ? flow : null;
}

function cookieName({ publicUrl }: HttpDeps): string {
  return publicUrl.startsWith('https:') ? '__Secure-callkey_oidc' : 'callkey_oidc';
}

function openCookies(ctx: Context, { publicUrl }: HttpDeps): Cookies {
  return new Cookies(ctx.req, ctx.res, { keys: ctx.app.keys, secure: publicUrl.startsWith('https:') });
}
