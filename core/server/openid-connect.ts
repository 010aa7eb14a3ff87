import type * as OpenidClient from 'openid-client';
import type { Logger } from 'pino';
import type { Clock, FlowSecrets, Identity, IdentityProvider } from '../domain/ports.ts';
import { IdentityProviderError } from '../domain/sign-in/identity-provider.ts';
import type { OidcConfig } from './start/config.ts';

type Client = typeof OpenidClient;
type Metadata = OpenidClient.ServerMetadata;

/** In seconds. How far the identity provider's clock may be off. Kerberos allows the same difference. */
const clockTolerance = 300;

/** How many failures of a kind are logged per interval, because anyone can make up callbacks. The metrics count all failures. */
const maxLogged = 20;

/** The identity provider's error responses that are caused by the user. */
const cancelledByUser: readonly unknown[] = ['access_denied', 'login_required', 'consent_required', 'interaction_required'];

/** Other limits than the usual ones, in ms, so that tests needn't wait. */
export type IdentityProviderLimits = {
  /** How long one request to the identity provider may take. */
  request?: number;
  /** How long the identity provider's discovery document is used before it's requested again. */
  metadataLife?: number;
  /** The interval in which only so many failures of a kind are logged. */
  logInterval?: number;
};

/**
 * The company's identity provider, implemented with `openid-client`. Its discovery document is requested only when someone signs in, and
 * again if there was no response, so that one that's down doesn't keep a core from starting.
 */
export function openIdentityProvider(
  config: OidcConfig,
  { clock, log, limits = {} }: { clock: Clock; log: Logger; limits?: IdentityProviderLimits | undefined },
): IdentityProvider {
  const { request: requestLimit = 5_000, metadataLife = 600_000, logInterval = 10_000 } = limits;
  /** In seconds, for openid-client. */
  const timeout = requestLimit / 1_000;
  const { issuer, clientId, clientSecret, name, publicUrl } = config;
  const redirectUri = `${publicUrl}/console/oidc/callback`;
  let known: { metadata: Metadata; until: number } | null = null;
  let discovering: Promise<Metadata> | null = null;

  function createWarning(): (fields: object) => void {
    let lines = { count: 0, until: 0 };
    return (fields) => {
      const now = performance.now();
      if (now >= lines.until) lines = { count: 0, until: now + logInterval };
      lines.count += 1;
      if (lines.count <= maxLogged) log.warn({ issuer, ...fields }, 'sign-in with the provider failed');
    };
  }
  // Each has its own limit, so that made-up callbacks don't hide the identity provider's failures.
  const warn = createWarning();
  const warnOfCallback = createWarning();

  /** Concurrent sign-ins share one request. */
  function discover(client: Client): Promise<Metadata> {
    if (known && known.until > performance.now()) return Promise.resolve(known.metadata);
    discovering ??= readMetadata(client).finally(() => {
      discovering = null;
    });
    return discovering;
  }

  async function readMetadata(client: Client): Promise<Metadata> {
    const discovered = await client.discovery(new URL(issuer), clientId, clientSecret, undefined, { timeout, execute: listChecks(client) });
    const metadata = discovered.serverMetadata();
    // Compare the issuers here, because for Entra ID, openid-client accepts the issuer of any tenant.
    if (!isSameIssuer(metadata.issuer, issuer)) throw invalid(`the issuer in the provider's discovery document is ${metadata.issuer}`);
    known = { metadata: { ...metadata }, until: performance.now() + metadataLife };
    return known.metadata;
  }

  /** Creates a configuration for each use, because it caches the provider's keys, which may just have been replaced. */
  async function configure(client: Client): Promise<OpenidClient.Configuration> {
    const metadata = await discover(client);
    const skew = Math.round((clock.now() - Date.now()) / 1_000);
    const settings = { client_secret: clientSecret, [client.clockSkew]: skew, [client.clockTolerance]: clockTolerance };
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate = methods.includes('client_secret_post') ? client.ClientSecretPost() : client.ClientSecretBasic();
    const configuration = new client.Configuration({ ...metadata }, clientId, settings, authenticate);
    configuration.timeout = timeout;
    for (const check of listChecks(client)) check(configuration);
    return configuration;
  }

  /** Without the first check, the library would accept a token with any signature if it came directly from the identity provider. */
  function listChecks(client: Client): ((configuration: OpenidClient.Configuration) => void)[] {
    const isOnThisMachine = issuer.startsWith('http:');
    return [client.enableNonRepudiationChecks, ...(isOnThisMachine ? [client.allowInsecureRequests] : [])];
  }

  /** The library checks all of this again, but may have to ask the identity provider for its discovery document first. */
  function checkCallback(query: string, { state }: FlowSecrets): void {
    const answer = new URLSearchParams(query);
    const [from, error] = [answer.get('iss'), answer.get('error')];
    if (answer.get('state') !== state) throw invalid("the callback's state is missing or different");
    if (from !== null && !isSameIssuer(from, issuer)) throw invalid("the callback's issuer is a different one");
    if (error !== null) {
      const reason = cancelledByUser.includes(error) ? 'cancelled' : 'refused';
      throw new IdentityProviderError(reason, `the callback contains an error${isErrorCode(error) ? ` (${error})` : ''}`);
    }
    if (!answer.get('code')) throw invalid('the callback contains no code');
  }

  async function identify(query: string, { state, nonce, verifier }: FlowSecrets): Promise<Identity> {
    const client = await import('openid-client');
    const configuration = await configure(client);
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
    const tokens = await client.authorizationCodeGrant(configuration, new URL(`${redirectUri}${query}`), checks);
    const claims = tokens.claims();
    if (!claims || typeof claims.sub !== 'string' || claims.sub === '' || claims.sub.length > 255) throw invalid('the subject is missing');
    // Check this here, because openid-client checks it only if the token is for several clients.
    if (claims['azp'] !== undefined && claims['azp'] !== clientId) throw invalid('the token was issued to another client');
    const {
      sub,
      email,
      email_verified: isVerified,
    } = claims['email'] === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined
      ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      : claims;
    return {
      issuer,
      subject: sub,
      email: typeof email === 'string' ? email : null,
      isEmailVerified: config.email === 'trusted' || isVerified === true,
    };
  }

  /** @throws IdentityProviderError, after logging the reason. Neither the error nor the log contains a token, a code or a person's data */
  async function run<Result>(work: () => Promise<Result>, warnOfFailure = warn): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      const reason = toReason(error);
      if (reason !== 'cancelled') warnOfFailure({ reason, error: describe(error) });
      throw new IdentityProviderError(reason, describe(error));
    }
  }

  return {
    issuer,
    name,
    authorizationUrl: ({ state, nonce, verifier }) =>
      run(async () => {
        const client = await import('openid-client');
        const url = client.buildAuthorizationUrl(await configure(client), {
          redirect_uri: redirectUri,
          scope: 'openid email',
          ...{ state, nonce, code_challenge_method: 'S256' },
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
        });
        return url.href;
      }),
    checkCallback: (query, flow) => run(async () => checkCallback(query, flow), warnOfCallback),
    identify: (query, flow) => run(() => identify(query, flow)),
    signOutUrl() {
      if (!known) void import('openid-client').then(discover).catch(() => undefined);
      const endpoint = known?.metadata.end_session_endpoint;
      if (endpoint === undefined || !URL.canParse(endpoint)) return null;
      const url = new URL(endpoint);
      url.searchParams.set('client_id', clientId);
      return url.href;
    },
  };
}

function isSameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '');
}

function invalid(message: string): IdentityProviderError {
  return new IdentityProviderError('refused', message);
}

/** The codes of openid-client and oauth4webapi for a response that a working identity provider wouldn't send. */
const unreachableCodes: readonly unknown[] = [
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_PARSE_ERROR',
];

function toReason(error: unknown): IdentityProviderError['reason'] {
  if (error instanceof IdentityProviderError) return error.reason;
  const { code, error: answered, name } = Object(error);
  if (cancelledByUser.includes(answered)) return 'cancelled';
  const isNetwork = name === 'TimeoutError' || (error instanceof TypeError && error.message === 'fetch failed');
  return isNetwork || unreachableCodes.includes(code) ? 'unreachable' : 'refused';
}

/** Whether a text from outside looks like an error code, so that it can be logged. */
function isErrorCode(text: string): boolean {
  return /^\w{1,50}$/.test(text);
}

/** Returns the library's own message, which doesn't quote the identity provider's response. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { cause } = error;
  const details = [cause instanceof Error && 'code' in cause ? cause.code : undefined, Reflect.get(error, 'error')];
  const codes = details.filter((code) => typeof code === 'string' && isErrorCode(code));
  return codes.length === 0 ? error.message : `${error.message} (${codes.join(', ')})`;
}
