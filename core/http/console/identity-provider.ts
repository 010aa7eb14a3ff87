import { hash } from 'node:crypto';
import { z } from 'zod';
import { flowParameter, type SignInOptions, type SignInResult, signInResultParameter, signInRoutes } from '#contract/console/sign-in.ts';
import { limits } from '#contract/limits.ts';
import { parseJson } from '#contract/text/json.ts';
import { plus } from '../../domain/instant.ts';
import type { IdentityProvider } from '../../domain/ports.ts';
import { Problem, unauthorized } from '../../domain/problem.ts';
import { findDeviceUser } from '../../domain/sign-in/devices.ts';
import {
  confirmationLife,
  createSignInCode,
  findUserByIdentity,
  flowLife,
  IdentityProviderError,
  makeFlowSecrets,
  randomText,
  SignInRefused,
  takeSignInCode,
} from '../../domain/sign-in/identity-provider.ts';
import { countIdentityProviderSignIn, takeOnce } from '../../domain/sign-in/throttle.ts';
import { readBody, readQuery } from '../middleware/body.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';
import { CoreCookies, publicPath, readVouchers, rememberDevice, startNewSession } from '../middleware/session.ts';
import { answerSession } from './sessions.ts';

export async function showSignIn(ctx: Context, { ports, publicUrl }: HttpDeps): Promise<void> {
  const { identityProvider: provider, passwordSignIn } = ports;
  const url = `${publicUrl}${signInRoutes.startOidc.path}`;
  const signOutUrl = provider?.signOutUrl() == null ? null : `${publicUrl}${signInRoutes.signOutOfProvider.path}`;
  ctx.body = { password: passwordSignIn, oidc: provider && { name: provider.name, url, signOutUrl } } satisfies SignInOptions;
}

export async function startOidc(ctx: Context, deps: HttpDeps): Promise<void> {
  const { ports } = deps;
  const provider = requireIdentityProvider(deps);
  const { port, challenge } = readQuery(ctx, signInRoutes.startOidc.query);
  const secrets = makeFlowSecrets(ports);
  const url = await provider.authorizationUrl(secrets).catch((error: unknown) => {
    if (error instanceof IdentityProviderError) return null;
    throw error;
  });
  if (url === null) {
    deps.onIdentityProviderResult('unreachable');
    return showPage(ctx, deps, 'unreachable');
  }
  const app = port === undefined || challenge === undefined ? null : { port, challenge };
  const { device } = readVouchers(ctx);
  keepFlow(ctx, deps, { step: 'provider', ...secrets, app, device, expiresAt: plus(ports.clock.now(), flowLife.toMillis()) });
  redirect(ctx, url);
}

/** If the app started the sign-in, asks the user to confirm it. */
export async function finishOidc(ctx: Context, deps: HttpDeps): Promise<void> {
  const provider = requireIdentityProvider(deps);
  const started = new URLSearchParams(ctx.search).get('state');
  const flow = listFlows(ctx, deps).find(({ state }) => state === started);
  if (flow) openCookies(ctx, deps).set(cookieName(flow.state), null, { sameSite: 'lax' });
  try {
    if (flow?.step !== 'provider') throw new IdentityProviderError('expired', "There's no sign-in to finish.");
    await finish(ctx, deps, provider, flow);
    deps.onIdentityProviderResult('accepted');
  } catch (error) {
    showPage(ctx, deps, toResult(error, deps, deps.getClientAddress(ctx)));
  }
}

async function finish(
  ctx: Context,
  deps: HttpDeps,
  provider: IdentityProvider,
  { app, device, ...secrets }: Extract<Flow, { step: 'provider' }>,
): Promise<void> {
  const { ports } = deps;
  const address = deps.getClientAddress(ctx);
  // What this refuses isn't counted, because anyone behind the same address could lock out everyone there with made-up callbacks.
  await provider.checkCallback(ctx.search, secrets);
  const deviceUser = await findDeviceUser(ports, device);
  const uncount = await countIdentityProviderSignIn(ports, { address, state: secrets.state, deviceUser });
  const identity = await provider.identify(ctx.search, secrets);
  const proof = await findUserByIdentity(ports, identity, { address, deviceUser });
  await uncount();
  rememberDevice(ctx, ports, proof);
  if (app) {
    const { user, ...rest } = proof;
    keepFlow(ctx, deps, {
      ...{ step: 'confirm', ...rest, userId: user.id, app, state: secrets.state, code: randomText(ports) },
      expiresAt: plus(ports.clock.now(), confirmationLife.toMillis()),
    });
    showPage(ctx, deps, 'app', `&${flowParameter}=${nameFlow(secrets.state)}`);
  } else {
    await startNewSession(ctx, proof);
    showPage(ctx, deps, 'done');
  }
}

/** The browser learns only whether to try again. */
function toResult(error: unknown, { refusals, onIdentityProviderResult }: HttpDeps, address: string): SignInResult {
  if (error instanceof IdentityProviderError) {
    onIdentityProviderResult(error.reason);
    return error.reason === 'refused' ? 'failed' : error.reason;
  }
  if (error instanceof SignInRefused) {
    onIdentityProviderResult(error.reason);
    refusals.onIdentityRefused(error.reason, error.who, address);
    return 'failed';
  }
  if (error instanceof Problem && error.code === 'too-many-requests') {
    onIdentityProviderResult('throttled');
    refusals.onSignInThrottled(address);
    return 'throttled';
  }
  // The user was disabled or unlinked during the sign-in.
  if (error instanceof Problem && error.code === 'unauthorized') {
    onIdentityProviderResult('refused');
    return 'failed';
  }
  throw error;
}

/** Only the core's own page can request the app's code, after a click, or a link in an email could sign in another program on this computer. */
export async function handOver(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBody(ctx, signInRoutes.handOver.body, limits.strangerBodyBytes);
  const flow = listFlows(ctx, deps).find(({ state }) => nameFlow(state) === input.flow);
  if (flow?.step !== 'confirm') throw unauthorized();
  const { app, code, state, step: _, expiresAt: __, ...proof } = flow;
  // If the user clicks several times, all responses have the same code.
  if (await takeOnce(deps.ports, `confirm ${state}`)) await createSignInCode(deps.ports, code, { ...proof, challenge: app.challenge });
  ctx.status = signInRoutes.handOver.status;
  ctx.body = { url: `http://127.0.0.1:${app.port}/?code=${code}` };
}

export async function signInFromApp(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBody(ctx, signInRoutes.signInFromApp.body, limits.strangerBodyBytes);
  const session = await startNewSession(ctx, await takeSignInCode(deps.ports, input));
  answerSession(ctx, deps, session);
}

export async function signOutOfProvider(ctx: Context, deps: HttpDeps): Promise<void> {
  redirect(ctx, requireIdentityProvider(deps).signOutUrl() ?? `${deps.publicUrl}/`);
}

/** The routes that call this aren't registered if there's no identity provider. */
function requireIdentityProvider({ ports }: HttpDeps): IdentityProvider {
  if (!ports.identityProvider) throw unauthorized();
  return ports.identityProvider;
}

/** The page loads without a session, and its URL doesn't contain a secret. */
function showPage(ctx: Context, { publicUrl }: HttpDeps, result: SignInResult, more = ''): void {
  redirect(ctx, `${publicUrl}/?${signInResultParameter}=${result}${more}`);
}

function redirect(ctx: Context, url: string): void {
  ctx.set('Location', url);
  ctx.body = null;
  ctx.status = 303;
}

const app = z.object({ port: z.number(), challenge: z.string() });

/** What a browser stores until it's redirected back and, if the app is signing in, until the user has confirmed that. */
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
    /** Signs the app in, once the user has confirmed that. */
    code: z.string(),
    userId: z.string(),
    issuer: z.string(),
    subject: z.string(),
    signInVersion: z.string(),
    app,
    expiresAt: z.number(),
  }),
]);
type Flow = z.infer<typeof flowSchema>;

/** A new sign-in replaces the oldest, because headers have a limit. */
const maxFlows = 5;

const start = 'callkey_oidc_';

/**
 * Each flow has its own cookie, because several tabs may sign in at the same time. Browsers send it only to the paths of this sign-in and,
 * unlike the session's, also when the identity provider redirects to them.
 */
function keepFlow(ctx: Context, deps: HttpDeps, flow: Flow): void {
  const cookies = openCookies(ctx, deps);
  const name = cookieName(flow.state);
  const others = listFlows(ctx, deps).filter((other) => cookieName(other.state) !== name);
  for (const { state } of others.slice(maxFlows - 1)) cookies.set(cookieName(state), null);
  const value = Buffer.from(JSON.stringify(flow)).toString('base64url');
  cookies.set(name, value, { maxAge: flow.expiresAt - deps.ports.clock.now(), sameSite: 'lax' });
}

/** Newest first. */
function listFlows(ctx: Context, deps: HttpDeps): Flow[] {
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

/** The name isn't a secret. */
function nameFlow(state: string): string {
  return hash('sha256', state).slice(0, 8);
}

function openCookies(ctx: Context, { publicUrl, sessionSecrets }: HttpDeps): CoreCookies {
  return new CoreCookies(ctx, sessionSecrets, { secure: publicUrl.startsWith('https:'), path: `${publicPath(publicUrl)}/console/oidc` });
}
