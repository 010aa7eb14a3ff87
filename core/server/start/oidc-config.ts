import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { lineSchema } from '#contract/text/text.ts';
import { ConfigError } from './config-error.ts';

/** The company's OpenID Connect provider. @property email whether to trust all email addresses, or only verified ones */
export type OidcConfig = Readonly<{
  issuer: string;
  clientId: string;
  clientSecret: string;
  name: string;
  email: 'verified' | 'trusted';
  /** The URL at which browsers reach this core, without a trailing slash. */
  publicUrl: string;
}>;

/** Secrets are sent to these addresses, so they must use https or be on this machine. */
const address = z
  .string()
  .refine((text) => readServerAddress(text).ok, { error: 'must be an https URL, or an http URL on this machine, without a query' });

/** Browsers send cookies and origins in this form. */
function normalizeAddress(text: string): string {
  const read = readServerAddress(text);
  return read.ok ? read.address : text;
}

const nameSchema = lineSchema(40);

export const oidcVariables = {
  PUBLIC_URL: address.transform(normalizeAddress).optional(),
  OIDC_ISSUER: address.optional(),
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  OIDC_NAME: z
    .string()
    .default('single sign-on')
    .refine((text) => nameSchema.safeParse(text).success, { error: 'must be 1 to 40 characters, without control characters' }),
  OIDC_EMAIL: z.enum(['verified', 'trusted'], { error: 'must be verified or trusted' }).optional(),
  PASSWORD_SIGN_IN: z.enum(['on', 'off'], { error: 'must be on or off' }).default('on'),
};

const schema = z.object(oidcVariables);
const required = ['PUBLIC_URL', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const;

/** @returns null if no provider is configured @throws ConfigError */
export function toOidc(env: z.output<typeof schema> & { WEB_CONSOLE: 'on' | 'off' }): OidcConfig | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, PUBLIC_URL: publicUrl } = env;
  if (issuer === undefined) {
    const variable = (['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_EMAIL'] as const).find((name) => env[name] !== undefined);
    if (variable) throw new ConfigError('OIDC_ISSUER', `is required when ${variable} is set`);
    if (env.PASSWORD_SIGN_IN === 'off')
      throw new ConfigError('PASSWORD_SIGN_IN', "can't be off without OIDC_ISSUER, because no one could sign in");
    return null;
  }
  if (clientId === undefined || clientSecret === undefined || publicUrl === undefined) {
    throw new ConfigError(required.find((name) => env[name] === undefined) ?? 'PUBLIC_URL', 'is required when OIDC_ISSUER is set');
  }
  // The provider sends the browser back to a page of the console.
  if (env.WEB_CONSOLE === 'off') throw new ConfigError('WEB_CONSOLE', 'must be on when OIDC_ISSUER is set');
  if (isForAllMicrosoftTenants(issuer)) throw new ConfigError('OIDC_ISSUER', 'must contain the ID of your own tenant');
  if (env.OIDC_EMAIL === 'trusted' && isForEveryone(issuer)) {
    throw new ConfigError('OIDC_EMAIL', 'must be verified with this issuer, because anyone can get an account there');
  }
  return { issuer, clientId, clientSecret, publicUrl, name: nameSchema.parse(env.OIDC_NAME), email: env.OIDC_EMAIL ?? 'verified' };
}

/**
 * Whether an issuer of Entra ID is for users of all companies, or for private Microsoft accounts. Such a user can claim any email address
 * (known as nOAuth).
 */
function isForAllMicrosoftTenants(issuer: string): boolean {
  const { hostname, pathname } = new URL(issuer);
  const isMicrosoft = /(^|\.)(microsoftonline\.(com|us)|windows\.net|chinacloudapi\.cn|partner\.microsoftonline\.cn)$/.test(hostname);
  return isMicrosoft && /^\/(common|organizations|consumers|9188040d-6c67-4c5b-b112-36a304b66dad)(\/|$)/i.test(pathname);
}

/** Issuers where anyone can create an account, or an organization with any addresses. */
const issuersForEveryone: readonly string[] = [
  ...['accounts.google.com', 'appleid.apple.com', 'gitlab.com', 'login.salesforce.com', 'slack.com'],
  ...['www.linkedin.com', 'api.login.yahoo.com', 'www.facebook.com', 'id.twitch.tv', 'discord.com'],
];

function isForEveryone(issuer: string): boolean {
  return issuersForEveryone.includes(new URL(issuer).hostname);
}
