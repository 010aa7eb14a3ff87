/** Splits `postgres://user:password@one:5432,two:5432/callkey` into the part before the hosts, the hosts, and the part after them. */
const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)/s;

/** Returns an address for each host in a URL. As in PostgreSQL's own programs, commas separate the hosts. */
export function parseAddresses(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = parts.exec(url) ?? [];
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

/** Whether the address of each host in a URL is valid, and the URL doesn't ask for a read-only host. */
export function isPostgresUrl(url: string): boolean {
  return parseAddresses(url).every((address) => {
    if (!URL.canParse(address)) return false;
    const attributes = new URL(address).searchParams.get('target_session_attrs');
    return attributes === null || attributes === 'read-write' || attributes === 'primary';
  });
}
