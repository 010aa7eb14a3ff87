import { isDecodable } from '#contract/server-address.ts';

/** Splits `postgres://user:password@one:5432,two:5432/callkey` into the part before the hosts, the hosts, and the part after them. */
const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)/s;

/** Returns an address for each host in a URL. As in PostgreSQL's own programs, commas separate the hosts. */
export function parseAddresses(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = parts.exec(url) ?? [];
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

/** The parameters that a URL may have, with the values that are allowed, if not any. */
const parameters: Record<string, readonly string[] | undefined> = {
  ...{ host: undefined, port: undefined, user: undefined, password: undefined, dbname: undefined },
  ...{ options: undefined, sslcert: undefined, sslkey: undefined, sslrootcert: undefined },
  sslmode: ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'],
  target_session_attrs: ['read-write', 'primary'],
};

/**
 * Checks a URL, and moves `?host=`, `?port=`, `?user=`, `?password=` and `?dbname=` to where the URL itself has them. Node's driver, PostgreSQL's
 * programs and error messages read what's returned. Each of them reads a URL in its own way, so otherwise a core and its backup could use
 * different servers.
 *
 * @throws Error whose message says what the URL must be, and contains no part of its user name and password
 */
export function normalizeUrl(url: string): string {
  const [, before = '', hostList = '', after = ''] = parts.exec(url) ?? [];
  if (/[@#]/.test(after) || /\s/.test(url) || !isDecodable(url))
    throw new Error('must be percent-encoded: for example, write @ in a password as %40, / as %2F, # as %23, % as %25 and a space as %20');
  // Node.js refuses NUL in a variable of PostgreSQL's programs, with an error that contains the value.
  if (/\p{Cc}/u.test(decodeURIComponent(url))) throw new Error('must not contain control characters');
  // Node.js doesn't parse a user without a host, as in `postgres://user@/callkey?host=/cloudsql/…`.
  const addresses = hostList.split(',').map((host) => `${before}${host.replace(/^(?=:|$)/, noHost)}${after}`);
  if (!addresses.every((address) => URL.canParse(address))) throw new Error('must have a valid host and port');
  const parsed = addresses.map((address) => new URL(address));
  const [{ searchParams, pathname, username, password } = new URL('postgres:')] = parsed;
  for (const [name, value] of searchParams) {
    if (!Object.hasOwn(parameters, name)) throw new Error(`has the parameter ${printable(name)}, which isn't supported. Remove it`);
    if (searchParams.getAll(name).length > 1) throw new Error(`must have the parameter ${name} only once`);
    const allowed = parameters[name];
    if (allowed && !allowed.includes(value))
      throw new Error(`must have one of these values in its parameter ${name}: ${allowed.join(', ')}`);
  }
  // The driver reads these values as verify-full, too, and warns about them.
  if (['prefer', 'require', 'verify-ca'].includes(searchParams.get('sslmode') ?? '')) searchParams.set('sslmode', 'verify-full');
  const take = (name: string) => {
    const value = searchParams.get(name);
    searchParams.delete(name);
    return value;
  };
  const ports = take('port')?.split(',') ?? parsed.map(({ port }) => port);
  const hosts = take('host')?.split(',').map(toUrlHost) ?? parsed.map(({ hostname }) => hostname.replace(noHost, ''));
  if (!ports.every((port) => /^\d*$/.test(port))) throw new Error('must have a valid host and port');
  if (ports.length > 1 && ports.length !== hosts.length) throw new Error('must have as many ports as hosts');
  const user = encode(take('user')) ?? username;
  const secret = encode(take('password')) ?? password;
  const database = encode(take('dbname')) ?? pathname.slice(1);
  // The driver decodes these characters differently than PostgreSQL's programs.
  if (/\/|%(2[3456bcf]|3[abdf]|40)/i.test(database)) throw new Error('must name a database without /, ?, # and similar characters');
  const credentials = `${user}${secret === '' ? '' : `:${secret}`}`;
  const all = hosts.map((host, index) => {
    const port = ports[index] ?? ports[0] ?? '';
    return `${host}${port === '' ? '' : `:${port}`}`;
  });
  const query = searchParams.size === 0 ? '' : `?${searchParams}`;
  const normal = `postgres://${credentials === '' ? '' : `${credentials}@`}${all.join(',')}/${database}${query}`;
  if (!parseAddresses(normal).every((address) => URL.canParse(address))) throw new Error('must have a valid host and port');
  return normal;
}

const noHost = 'no-host.invalid';

const encode = (value: string | null) => (value === null ? undefined : encodeURIComponent(value));

/** A host in the form that a URL has: an IPv6 address in brackets, and the folder of a Unix socket percent-encoded. */
const toUrlHost = (host: string) => (/^\[.*\]$/.test(host) ? host : /^[^/]*:[^/]*$/.test(host) ? `[${host}]` : encodeURIComponent(host));

const printable = (name: string) => (/^[\w.-]{1,40}$/.test(name) ? name : 'with unusual characters');
