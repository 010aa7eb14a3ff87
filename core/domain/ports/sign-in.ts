import type { Millis } from '../instant.ts';
import type {
  AuditEvent,
  CheckedCode,
  Digest,
  Link,
  SecondFactor,
  Session,
  SignInCode,
  SignInVersion,
  Subject,
  TargetUser,
  Tenancy,
  User,
} from '../model.ts';

/** The random values of one sign-in with the provider. All are 32 bytes in base64url. */
export type FlowSecrets = { state: string; nonce: string; verifier: string };

/** A person's identity, according to the provider. */
export type Identity = Subject & { email: string | null; isEmailVerified: boolean };

/** An OpenID Connect provider. Nothing that it sends is stored, except issuer and subject. */
export type IdentityProvider = {
  issuer: string;
  /** For the button: "Sign in with …". */
  name: string;
  /** Returns the page of the provider where the user signs in. @throws ProviderError */
  authorizationUrl(flow: FlowSecrets): Promise<string>;
  /** Checks, without asking the provider, that a callback's query contains a code for this sign-in. @throws ProviderError */
  checkCallback(query: string, flow: FlowSecrets): Promise<void>;
  /** Exchanges the code in a callback's query for the identity. @throws ProviderError */
  identify(query: string, flow: FlowSecrets): Promise<Identity>;
  /** Returns the page that ends the session at the provider; null if there is none, or if the provider hasn't answered yet. */
  signOutUrl(): string | null;
};

/**
 * An attempt to enter a password or code. In the queue for passwords, networks take turns. Attempts for which a session or known device
 * vouches have a queue of their own, in which users take turns.
 *
 * @property vouched identifies the session or known device of the same user that the attempt comes from, if any. Wrong passwords from there
 * count only against this session or device, so that no one else can lock the user out of it (OWASP Authentication Cheat Sheet, device
 * cookies).
 */
export type Attempt = { email: string; address: string; vouched: string | null };

/** Allows at most `max` attempts within `window` ms of the first one. */
export type ThrottleCounter = { key: string; max: number; window: number };

/** Counts attempts, across all processes. */
export type ThrottleStore = {
  /** @returns when the last of the full counters ends, at most one window from now; null if none of them is full */
  blockedUntil(counters: readonly ThrottleCounter[], now: Millis): Promise<Millis | null>;
  /** Increments all counters or, if one is full, none of them. @returns whether it counted */
  take(counters: readonly ThrottleCounter[], now: Millis): Promise<boolean>;
  giveBack(key: string): Promise<void>;
  reset(key: string): Promise<void>;
  /** Deletes counters whose window is over. If there are still too many, also deletes those with the fewest attempts. */
  sweep(now: Millis): Promise<void>;
};

export type SessionBounds = { startedAfter: Millis; seenAfter: Millis; before: Millis; now: Millis };

export type NewSession = { id: Digest; userId: string; at: Millis; halfOpenUntil: Millis | null };

/** Stores sessions, which are identified by the digest of their ID. */
export type SessionStore = {
  /**
   * Starts a session, or a half-open one that waits for a code.
   *
   * @param event null for a half-open session, because the user hasn't signed in yet
   * @returns false, without starting a session, if the way in which the user signs in has changed, or the user is disabled
   */
  start(session: NewSession, version: SignInVersion, event: AuditEvent | null): Promise<boolean>;
  /**
   * Replaces a half-open session with an open one, and uses up the code.
   *
   * @returns false, without changing anything, if the half-open session has ended or the code was already used
   */
  finish(halfOpen: Digest, session: NewSession, code: CheckedCode, events: readonly AuditEvent[]): Promise<boolean>;
  /** Like `start`. Also returns false if the user isn't linked to this identity. */
  startLinked(session: NewSession, version: SignInVersion, subject: Subject, event: AuditEvent): Promise<boolean>;
  find(id: Digest): Promise<Session | null>;
  /** Updates only an existing session, because a slow request must not bring back a deleted one. */
  touch(id: Digest, at: Millis): Promise<void>;
  /** @returns false if the session has ended */
  selectTenancy(id: Digest, tenancy: Tenancy | null): Promise<boolean>;
  end(id: Digest, event: AuditEvent): Promise<boolean>;
  /** Ends all sessions of the event's subject. @returns the number of sessions */
  endAll(event: AuditEvent): Promise<number>;
  /** Deletes sessions that started, or were last seen, outside these limits. */
  sweep(bounds: SessionBounds): Promise<void>;
  /** Deletes sessions that were started by a way to sign in that's no longer allowed. */
  endDisallowed(allowed: { password: boolean; issuer: string | null }): Promise<void>;
};

/** Stores the links between users and their identities at the provider. */
export type LinkStore = {
  find(subject: Subject): Promise<{ user: User; disabledAt: Millis | null; signInVersion: SignInVersion } | null>;
  /**
   * Links a user, and replaces a link to another provider. If the user's password was handed out, also ends it and removes the second
   * factor, because they may be someone else's.
   *
   * @param keepsPassword whether the person has proved that they chose the password
   * @returns false if the user is linked to another identity at this provider, this identity belongs to another user, the way in which the
   * user signs in has changed, or the user is disabled
   */
  create(user: TargetUser, subject: Subject, keepsPassword: boolean, event: AuditEvent): Promise<boolean>;
  /** Deletes a user's link. @returns false, without changing anything, if the user isn't linked, or isn't as expected */
  delete(user: TargetUser, event: AuditEvent): Promise<boolean>;
  /** Lists all links by email address, for the operator. */
  list(): Promise<(Link & { email: string })[]>;
  createCode(code: SignInCode): Promise<void>;
  /** Returns a code and deletes it, so that it works only once. */
  takeCode(digest: Digest): Promise<SignInCode | null>;
  sweepCodes(before: Millis): Promise<void>;
};

export type SecondFactorStore = {
  find(userId: string): Promise<SecondFactor | null>;
  /**
   * Stores an unconfirmed secret, and replaces an earlier one.
   * @param session the session that must still be open
   * @returns false if the user already has a second factor, or has changed the password since
   * @throws Problem `unauthorized` if the session has ended
   */
  enroll(user: TargetUser, secret: string, session?: Digest): Promise<boolean>;
  /** @returns false, without changing anything, if the unconfirmed secret is a different one */
  confirm(userId: string, confirmed: ConfirmedFactor, event: AuditEvent): Promise<boolean>;
  /** Uses up a code. @returns false if it was already used, or never existed */
  use(userId: string, code: CheckedCode, events: readonly AuditEvent[]): Promise<boolean>;
  /** Uses up a code and removes the second factor. @returns false, without changing anything, if the code was already used */
  remove(userId: string, code: CheckedCode, event: AuditEvent): Promise<boolean>;
  /** Uses up a code and replaces all recovery codes. @returns false, without changing anything, if the code was already used */
  renew(userId: string, code: CheckedCode, recoveryDigests: readonly Digest[], event: AuditEvent): Promise<boolean>;
  countRecoveryCodes(userId: string): Promise<number>;
  /**
   * Removes the second factor and ends the user's sessions.
   *
   * @returns the number of sessions; null if there's no second factor, or the user isn't as expected
   */
  reset(user: TargetUser, event: AuditEvent): Promise<number | null>;
  /** Lists encrypted secrets that don't start with `prefix`, sorted by user ID, starting after the ID `after`. */
  listSealedOtherwise(prefix: string, after: string, limit: number): Promise<{ userId: string; secret: string }[]>;
  /** Replaces an encrypted secret, unless it has changed. */
  reseal(userId: string, from: string, to: string): Promise<void>;
};

type ConfirmedFactor = { secret: string; step: number; recoveryDigests: readonly Digest[]; at: Millis };
