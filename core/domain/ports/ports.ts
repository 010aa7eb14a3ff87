import type { OutcomeState } from '#contract/calls/dialer.ts';
import type { StopReason } from '../model.ts';
import type { ActivityStore, AuditChainStore } from './audit.ts';
import type { CallListStore, CallStore, ContactStore, RetentionStore } from './calls.ts';
import type { DialingStore } from './dialing.ts';
import type { DirectoryStore, TenancyStore, UserStore } from './directory.ts';
import type { Clock, ClockStore, Passwords, Randomness, SecretBox } from './environment.ts';
import type { ApiKeyStore } from './keys.ts';
import type { ProtectionStore } from './protection.ts';
import type { IdentityProvider, LinkStore, SecondFactorStore, SessionStore, ThrottleStore } from './sign-in.ts';

export type Stores = {
  apiKeys: ApiKeyStore;
  calls: CallStore;
  sessions: SessionStore;
  links: LinkStore;
  secondFactors: SecondFactorStore;
  users: UserStore;
  tenancies: TenancyStore;
  directory: DirectoryStore;
  callList: CallListStore;
  activity: ActivityStore;
  dialing: DialingStore;
  retention: RetentionStore;
  auditChain: AuditChainStore;
  contacts: ContactStore;
  protection: ProtectionStore;
  clock: ClockStore;
};

/** Everything that the domain needs from outside. */
export type Ports = {
  clock: Clock;
  randomness: Randomness;
  passwords: Passwords;
  throttle: ThrottleStore;
  stores: Stores;
  /** The company's OpenID Connect provider; null if none is configured. */
  provider: IdentityProvider | null;
  /** Whether users can sign in with a password. If not, passwords can't be used, changed or handed out. */
  passwordSignIn: boolean;
  secretBox: SecretBox;
  /** Whether everyone who signs in with a password needs a second factor. */
  requiresSecondFactor: boolean;
  /** The maximum number of active keys per user. */
  maxActiveKeys: number;
  /** The command that users type to run `admin`, as messages show it. */
  adminCommand: string;
  /** Counts the outcomes that a provider reports. */
  onOutcome(state: OutcomeState): void;
  /** Counts the calls that lists, hours or rules about numbers have stopped. */
  onStopped(reason: StopReason, calls: number): void;
  /** Called when numbers were added to a list, so that queued calls to them can be blocked soon. */
  onListed(): void;
  /** Called when calling hours have changed, so that they can be applied to held calls soon. */
  onHoursChanged(): void;
};
