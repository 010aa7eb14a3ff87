/** `postgres://user:password@one:5432,two:5432/callkey`: what stands before the hosts, the hosts, and what stands after them. */
const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)/s;

/** @returns an address for each of the hosts that a URL names, separated by commas as PostgreSQL's own programs take them */
export function addressesOf(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = parts.exec(url) ?? [];
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

/** Whether each host of a URL can be asked, and none is wanted but the one that takes writes. */
export function isPostgresUrl(url: string): boolean {
  return addressesOf(url).every((address) => {
    if (!URL.canParse(address)) return false;
    const wanted = new URL(address).searchParams.get('target_session_attrs');
    return wanted === null || wanted === 'read-write' || wanted === 'primary';
  });
}
