/** The cookies of a session, by name. They are as good as a password. */
export type KeptCookies = Readonly<Record<string, string>>;

/** A core sets a session's cookie and its signature, with a prefix when it is served over https. */
const sessionCookie = /^(?:__Host-)?callkey_session(?:\.sig)?$/;

/** Holds the cookies of one session with one core. All others that a server may set are passed over. */
export class CookieJar {
  readonly #cookies: Map<string, string>;

  constructor(kept: KeptCookies) {
    this.#cookies = new Map(Object.entries(kept).filter(([name]) => sessionCookie.test(name)));
  }

  /** @param lines of the Set-Cookie header (RFC 6265 §4.1) */
  take(lines: string | readonly string[]): void {
    for (const line of [lines].flat()) {
      const [pair = ''] = line.split(';', 1);
      const end = pair.indexOf('=');
      const name = pair.slice(0, end).trim();
      if (end < 1 || !sessionCookie.test(name)) continue;
      const value = pair.slice(end + 1).trim();
      // A core takes a cookie back by making it empty.
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }

  /** The Cookie header; empty where there is no session. */
  header(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  all(): KeptCookies {
    return Object.fromEntries(this.#cookies);
  }
}
