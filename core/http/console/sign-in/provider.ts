import { flowParameter, type SignInOptions, type SignInResult, signInResultParameter } from '#contract/console/sign-in.ts';
import { limits } from '#contract/limits.ts';
import { signInRoutes } from '#contract/routes/sign-in.ts';
import { plus } from '../../../domain/instant.ts';
import type { IdentityProvider } from '../../../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../../../domain/problem.ts';
import { findDeviceUser } from '../../../domain/sign-in/devices.ts';
import {
  confirmationLife,
  createSignInCode,
  findUserByIdentity,
  flowLife,
  makeFlowSecrets,
  makeSignInCode,
  ProviderError,
  SignInRefused,
  takeSignInCode,
} from '../../../domain/sign-in/identity-provider.ts';
import { countProviderSignIn, takeOnce } from '../../../domain/sign-in/throttle.ts';
import { readBody, readQuery } from '../../middleware/body.ts';
import type { Context, HttpDeps } from '../../middleware/context.ts';
import { readVouchers, rememberDevice } from '../../middleware/known-device.ts';
import { startNewSession } from '../../middleware/session.ts';
import { sessionView } from '../../views.ts';
import { dropFlow, type Flow, keepFlow, listFlows, nameFlow, readFlow } from './flow-cookie.ts';

export async function showSignIn(ctx: Context, { ports, publicUrl }: HttpDeps): Promise<void> {
  const { provider, passwordSignIn } = ports;
  const url = `${publicUrl}${signInRoutes.startOidc.path}`;
  const signOutUrl = provider?.signOutUrl() == null ? null : `${publicUrl}${signInRoutes.signOutOfProvider.path}`;
  ctx.body = { password: passwordSignIn, oidc: provider && { name: provider.name, url, signOutUrl } } satisfies SignInOptions;
}

/** Sends the browser to the provider. */
export async function startOidc(ctx: Context, deps: HttpDeps): Promise<void> {
  const { ports } = deps;
  const provider = requireProvider(deps);
  const { port, challenge } = readQuery(ctx, signInRoutes.startOidc.query);
  const secrets = makeFlowSecrets(ports);
  const url = await provider.authorizationUrl(secrets).catch((error: unknown) => {
    if (error instanceof ProviderError) return null;
    throw error;
  });
  if (url === null) {
    deps.onProviderSignIn('unreachable');
    return showPage(ctx, deps, 'unreachable');
  }
  const app = port === undefined || challenge === undefined ? null : { port, challenge };
  const { device } = readVouchers(ctx);
  keepFlow(ctx, deps, { step: 'provider', ...secrets, app, device, expiresAt: plus(ports.clock.now(), flowLife.toMillis()) });
  redirect(ctx, url);
}

/** Signs in the browser that comes back from the provider or, if the app started the sign-in, asks the user to confirm it. */
export async function finishOidc(ctx: Context, deps: HttpDeps): Promise<void> {
  const provider = requireProvider(deps);
  const flow = readFlow(ctx, deps, new URLSearchParams(ctx.search).get('state') ?? '');
  if (flow) dropFlow(ctx, deps, flow);
  try {
    if (flow?.step !== 'provider') throw new ProviderError('expired', "There's no sign-in to finish.");
    await finish(ctx, deps, provider, flow);
    deps.onProviderSignIn('accepted');
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
  const uncount = await countProviderSignIn(ports, { address, state: secrets.state, deviceUser });
  const identity = await provider.identify(ctx.search, secrets);
  const proof = await findUserByIdentity(ports, identity, { address, deviceUser });
  await uncount();
  rememberDevice(ctx, ports, proof);
  if (app) {
    const { user, ...rest } = proof;
    keepFlow(ctx, deps, {
      ...{ step: 'confirm', ...rest, userId: user.id, app, state: secrets.state, code: makeSignInCode(ports) },
      expiresAt: plus(ports.clock.now(), confirmationLife.toMillis()),
    });
    showPage(ctx, deps, 'app', `&${flowParameter}=${nameFlow(secrets.state)}`);
  } else {
    await startNewSession(ctx, proof);
    showPage(ctx, deps, 'done');
  }
}

/** Records why a sign-in failed. The browser learns only whether to try again. */
function toResult(error: unknown, { refusals, onProviderSignIn }: HttpDeps, address: string): SignInResult {
  if (error instanceof ProviderError) {
    onProviderSignIn(error.reason);
    return error.reason === 'refused' ? 'failed' : error.reason;
  }
  if (error instanceof SignInRefused) {
    onProviderSignIn(error.reason);
    refusals.onProviderRefused(error.reason, error.who, address);
    return 'failed';
  }
  if (error instanceof Problem && error.code === 'too-many-requests') {
    onProviderSignIn('throttled');
    refusals.onSignInThrottled(address);
    return 'throttled';
  }
  // The user was disabled or unlinked during the sign-in.
  if (error instanceof Problem && error.code === 'unauthorized') {
    onProviderSignIn('refused');
    return 'failed';
  }
  throw error;
}

/**
 * Generates the code that signs the app in. Only the core's own page can request it, after a click. Otherwise, a link in an email could
 * sign in a different program on this computer.
 */
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
  ctx.status = signInRoutes.signInFromApp.status;
  ctx.body = sessionView(session, deps);
}

export async function signOutOfProvider(ctx: Context, deps: HttpDeps): Promise<void> {
  redirect(ctx, requireProvider(deps).signOutUrl() ?? `${deps.publicUrl}/`);
}

/** The routes that call this aren't registered if there's no provider. */
function requireProvider({ ports }: HttpDeps): IdentityProvider {
  if (!ports.provider) throw unauthorized();
  return ports.provider;
}

function unauthorized(): Problem {
  return new Problem('unauthorized', unauthorizedDetail);
}

/** Shows the console's page, which loads without a session. The URL says what happened, and doesn't contain a secret. */
function showPage(ctx: Context, { publicUrl }: HttpDeps, result: SignInResult, more = ''): void {
  redirect(ctx, `${publicUrl}/?${signInResultParameter}=${result}${more}`);
}

function redirect(ctx: Context, url: string): void {
  ctx.set('Location', url);
  ctx.body = null;
  ctx.status = 303;
}
