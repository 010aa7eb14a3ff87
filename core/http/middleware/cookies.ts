import { hash } from 'node:crypto';
import Cookies from 'cookies';
import { sessionLimits } from '../../domain/sign-in/sessions.ts';
import type { Context } from './context.ts';

/**
 * Reads and writes signed cookies whose names belong to this core. Cookies don't depend on the port, and a path doesn't keep them apart
 * reliably, so cores on one host name would otherwise replace each other's. A name ends with a fingerprint of the secret that signs it:
 * a core writes under its newest secret, and reads under all of them, so replacing the secrets doesn't sign anyone out.
 *
 * This is a class, because if each request's object had its own prototype, these objects would survive until a full garbage collection.
 */
export class CoreCookies extends Cookies {
  readonly #cookies: { secure: boolean; path: string; endings: readonly string[] };

  /** @param path browsers send the cookies only to this path */
  constructor({ req, res }: Context, secrets: readonly string[], { secure, path }: { secure: boolean; path: string }) {
    super(req, res, { keys: [...secrets], secure });
    this.#cookies = { secure, path, endings: secrets.map(fingerprint) };
  }

  override get(name: string, options?: Cookies.GetOption): string | undefined {
    // `Cookies` asks for the signature by its whole name.
    if (name.endsWith('.sig')) return super.get(name, options);
    for (const [index, ending] of this.#cookies.endings.entries()) {
      const value = super.get(this.#fullName(name, ending), options);
      // Write it again under the newest secret, so that the older ones can be removed. The core knows when it expires.
      if (value !== undefined && index > 0) this.#write(name, value, { maxAge: sessionLimits.absolute.toMillis(), sameSite: 'strict' });
      if (value !== undefined) return value;
    }
    return undefined;
  }

  override set(name: string, value?: string | null, options?: Cookies.SetOption): this {
    // `Cookies` deletes a signature that isn't valid, and renews one that was made with an older secret. Don't: it may belong to another
    // core, and `get` writes both again.
    if (name.endsWith('.sig')) return this;
    for (const ending of this.#cookies.endings.slice(1)) {
      const old = this.#fullName(name, ending);
      if (super.get(old, { signed: true }) !== undefined) super.set(old, null, { path: this.#cookies.path, signed: true });
    }
    return this.#write(name, value, options);
  }

  /** Lists the names of this core's cookies in the request that start with `start`, as `get` and `set` accept them. */
  list(start: string): string[] {
    const header = this.request.headers.cookie ?? '';
    const names = header.split(';').map((pair) => pair.slice(0, Math.max(0, pair.indexOf('='))).trim());
    const short = names.flatMap((name) =>
      this.#cookies.endings.flatMap((ending) => {
        const [, between] = new RegExp(`^${this.#fullName(`(${start}.*)`, ending)}$`).exec(name) ?? [];
        return between === undefined ? [] : [between];
      }),
    );
    return [...new Set(short)];
  }

  #write(name: string, value: string | null | undefined, options?: Cookies.SetOption): this {
    const [newest = ''] = this.#cookies.endings;
    return super.set(this.#fullName(name, newest), value, { ...options, path: this.#cookies.path, httpOnly: true, signed: true });
  }

  /** Over https, browsers send cookies with these prefixes only over https, and with `__Host-` only to this host (RFC 6265bis §4.1.3). */
  #fullName(name: string, ending: string): string {
    const prefix = this.#cookies.path === '/' ? '__Host-' : '__Secure-';
    return `${this.#cookies.secure ? prefix : ''}${name}_${ending}`;
  }
}

/** Returns the path at which browsers reach this core, without a slash at the end. */
export function publicPath(publicUrl: string): string {
  return (URL.parse(publicUrl)?.pathname ?? '').replace(/\/$/, '');
}

const fingerprints = new Map<string, string>();

function fingerprint(secret: string): string {
  const known = fingerprints.get(secret) ?? hash('sha256', `callkey cookies ${secret}`).slice(0, 8);
  fingerprints.set(secret, known);
  return known;
}
