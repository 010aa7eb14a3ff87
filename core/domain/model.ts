import type { AuditAction } from '#contract/console/activity.ts';
import type { Named, TenancyKind, UserType } from '#contract/console/common.ts';
import type { Millis } from './instant.ts';

export type Account = Named & { partnerId: string };

/** What a staff user has selected. `partnerId` is the partner itself, or the account's partner. */
export type Tenancy = Named & { kind: TenancyKind; partnerId: string; partnerName: string };

/**
 * Someone who can sign in. An account user has an account; a partner user has a partner and may be limited to one of its accounts; a staff
 * user has neither.
 */
export type User = {
  id: string;
  email: string;
  name: string;
  userType: UserType;
  account: Account | null;
  partner: Named | null;
};

/** A signed-in user. Only staff have a tenancy. */
export type Viewer = User & { tenancy: Tenancy | null };

/** Someone who runs `admin` on the server itself. */
export type Operator = { userType: 'operator' };

/** Changes with every change of how a user signs in: see sign-in/sessions.ts. */
export type SignInVersion = string;

/** An identity at an OpenID Connect provider. Neither field identifies someone alone. */
export type Subject = { issuer: string; subject: string };

/** What a user proved in order to start a session: the password, a code after the password, or a linked identity. */
export type Proof =
  | Pick<Credentials, 'user' | 'hasSecondFactor' | 'signInVersion'>
  | { halfOpen: { id: Digest; data: Session }; code: string; vouched: string | null }
  | LinkProof;
export type LinkProof = Subject & { user: User; signInVersion: SignInVersion };

export type Credentials = {
  user: User;
  passwordHash: string;
  passwordExpiresAt: Millis | null;
  disabledAt: Millis | null;
  hasSecondFactor: boolean;
  signInVersion: SignInVersion;
};

export type Session = {
  user: User;
  tenancy: Tenancy | null;
  passwordChangeDue: boolean;
  /** The identity provider that the user signed in with; null for a password. */
  issuer: string | null;
  /** The user was linked to the identity right before, so they haven't used this account yet. */
  beganWithLink: boolean;
  hasSecondFactor: boolean;
  signInVersion: SignInVersion;
  /** Set while the session waits for a code. */
  halfOpenUntil: Millis | null;
  startedAt: Millis;
  lastSeenAt: Millis;
};

/** The scope in which a key was created: a partner, or an account with its partner. */
export type OwningScope = { accountId: string | null; partnerId: string };

/** Someone whom others see. @property email null once the user has been deleted */
export type Person = Named & { email: string | null; isStaff: boolean };

/** The user who created a key. While they're disabled, the key is refused. */
type KeyOwner = Person & { isDisabled: boolean; lastSignInAt: Millis | null };

export type ApiKey = {
  id: string;
  name: string;
  creator: KeyOwner;
  owningScope: OwningScope;
  /** The scope of new audit events about the key. If its creator has moved to another partner, that partner's users see them. */
  eventScope: OwningScope;
  createdAt: Millis;
  lastUsedAt: Millis | null;
  expiresAt: Millis | null;
  expiryTimeZone: string | null;
  /** The creator's time zone. `limits` counts calls by the days of this zone. */
  timeZone: string;
  /** When the key got its daily call limit. */
  callsCountedFrom: Millis | null;
  limits: KeyLimits | null;
};

/** The limits of a key. At least one of them is set. */
export type KeyLimits = {
  /** Changes with each change of the limits, and is never reused. */
  version: string;
  /** The networks from which the key is accepted, in CIDR notation; null for any address. */
  addresses: readonly string[] | null;
  callsPerDay: number | null;
  timeZone: string;
};

/** A SHA-256 hash in 64 lower-case hexadecimal digits. Storage has only this of a key value or session ID. */
export type Digest = string;

export type AuditSubject = Named & {
  kind:
    | 'api-key'
    | 'user'
    | 'session'
    | 'partner'
    | 'account'
    | 'campaign'
    | 'server'
    | 'contact'
    | 'list'
    | 'call-log'
    | 'backup'
    | 'audit-log'
    | 'clock'
    | 'do-not-call';
};

/** Never contains a secret. */
export type AuditEvent = {
  id: string;
  at: Millis;
  /** Null for the operator on the server itself. */
  actor: Named | null;
  action: AuditAction;
  subject: AuditSubject;
  /** Null if the event belongs to the service and not to a partner. */
  owningScope: OwningScope | null;
  /** The caller's network address, or `local`. */
  address: string;
  /** What has changed, or why. */
  detail?: string | undefined;
  /** The session that makes the change, which must not have ended. Isn't stored. */
  session?: Digest;
  /** Set if the change counts against its user's budget. Isn't stored. */
  budget?: Budget | null;
};

/** The start of the hour in which a user's earlier changes count: see audit.ts. `lowestId` is the lowest ID of an event in it. */
export type Budget = { since: Millis; lowestId: string };

/** The session must still be there when the change is made. */
export type Actor = { who: Named | null; address: string; session?: Digest };

/** `viewer` says what someone may see and do, and `actor` how it's recorded. */
export type Caller = { viewer: Viewer | Operator; actor: Actor };
export type SignedInCaller = Caller & { viewer: Viewer };
