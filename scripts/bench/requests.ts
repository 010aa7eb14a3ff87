/**
 * A load: the URL, the kind of request in requests.lua, and its parameters. `successes` is the share of responses that must be 2xx: exactly,
 * if it's 0 or 1, and otherwise within 0.01. It's null if the load isn't measured itself, so its responses aren't checked.
 */
export type Target = { url: string; kind: string; parameters: readonly string[]; successes: number | null };

/** @param key sent with each request, if the server checks one */
export function getting(url: string, key?: string): Target {
  return { url, kind: 'get', parameters: key === undefined ? [] : [key], successes: 1 };
}

/** Places calls, and uses the keys in turn. */
export function placing(url: string, path: string, keys: readonly string[], successes = 1, contacts = 1_000): Target {
  return { url, kind: 'place', parameters: [path, keys.join(','), String(contacts)], successes };
}

/** Places calls with the request IDs `c1`, `c2` and so on. */
export function placingNumbered(url: string, path: string, key: string): Target {
  return { url, kind: 'place_numbered', parameters: [path, key], successes: 1 };
}

/** Cancels the calls with the request IDs `c1`, `c2` and so on, each once. */
export function cancelling(url: string, path: string, key: string): Target {
  return { url, kind: 'cancel', parameters: [path, key], successes: 1 };
}

/** Half of the requests place a call, a quarter cancel one of those calls, and a quarter use a key that doesn't exist. */
export function mixing(url: string, path: string, key: string, unknown: string, pauseMs: number): Target {
  return { url, kind: 'mix', parameters: [path, key, unknown, String(pauseMs)], successes: 0.75 };
}

/** Tries passwords, each time for a different user and from a different network. */
export function flooding(url: string): Target {
  return { url, kind: 'sign_in', parameters: [], successes: null };
}
