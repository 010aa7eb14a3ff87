/** The cookies of a session by name. They're as sensitive as a password. */
export type SessionCookies = Readonly<Record<string, string>>;

/** The session's cookie, the known device's cookie, and their signatures. Their names end with a fingerprint of the core's secret. */
const ourCookie = /^(?:__(?:Host|Secure)-)?callkey_(?:session|device)_[0-9a-f]{8}(?:\.sig)?$/;
const deviceCookie = /^(?:__(?:Host|Secure)-)?callkey_device_[0-9a-f]{8}(?:\.sig)?$/;

/** Returns the cookies that outlive a session. A user who sends them isn't locked out if someone else enters wrong passwords. */
export function deviceCookies(cookies: SessionCookies): SessionCookies {
  return Object.fromEntries(Object.entries(cookies).filter(([name]) => deviceCookie.test(name)));
}

/** Holds the cookies of one session with one core, and ignores all other cookies from the server. */
export class CookieJar {
  readonly #cookies: Map<string, string>;

  constructor(stored: SessionCookies) {
    this.#cookies = new Map(Object.entries(stored).filter(([name]) => ourCookie.test(name)));
  }

  /** @param lines the Set-Cookie headers (RFC 6265 §4.1) */
  update(lines: string | readonly string[]): void {
    for (const line of [lines].flat()) {
      const [pair = ''] = line.split(';', 1);
      const end = pair.indexOf('=');
      const name = pair.slice(0, end).trim();
      if (end < 1 || !ourCookie.test(name)) continue;
      const value = pair.slice(end + 1).trim();
      // The core deletes a cookie by setting it to the empty string.
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }

  header(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  all(): SessionCookies {
    return Object.fromEntries(this.#cookies);
  }
}
