import type { CallState } from '#contract/calls.ts';
import type {
  AccountsView,
  ActivityView,
  ApiKeysView,
  ApiKeyView,
  CallsView,
  CampaignsView,
  CreateApiKey,
  CreatedApiKeyView,
  DeletionView,
  RevocationView,
  SessionView,
  TenanciesView,
  TenancyKind,
  UserType,
  UserView,
} from '#contract/console.ts';
import type { FieldError, ProblemCode } from '#contract/problems.ts';

/** Why the core did not do what was asked, in kinds that each have their own way on. */
export type Failure =
  /** No answer came from there: try again. */
  | { kind: 'unreachable'; detail: string }
  /** Sign in again. */
  | { kind: 'session-ended' }
  /** Something answers that this console cannot work with: a core of another generation, or no core at all. */
  | { kind: 'incompatible'; core: 'older' | 'newer' | 'unknown' }
  /** The core says no, and why. */
  | { kind: 'refused'; code: ProblemCode; detail: string; errors: FieldError[]; retryAfterSeconds: number | null };

export type Result<Value> = { ok: true; value: Value } | { ok: false; failure: Failure };

/** Whether a session can be kept with the system's encrypted storage, and if not, why in a plain word. */
export type Keeping = { possible: true } | { possible: false; reason: string };

/** What the console starts with. */
export type Beginning = {
  remembered: { server: string; email: string };
  keeping: Keeping;
  /** The kept session, looked up in its core; null where none was kept. */
  session: Result<SessionView> | null;
};

/** @property keepSignedIn null leaves it as it is */
export type SignIn = { server: string; email: string; password: string; keepSignedIn: boolean | null };
export type PasswordChange = { currentPassword: string; newPassword: string };
export type TenancyChoice = { kind: TenancyKind; id: string } | { kind: null };
export type CallQuery = { campaignId: string; state: CallState | null; search: string; cursor: string | null };
export type NewUser = { email: string; name: string; userType: UserType; accountId?: string | undefined };
export type Removal = { id: string; cancelQueuedCalls: boolean };

/** What the renderer may ask of the main process. Each is a channel of its name; main checks sender and input of each. */
export type Channels = {
  begin(): Promise<Beginning>;
  signIn(input: SignIn): Promise<Result<SessionView>>;
  signOut(): Promise<Result<null>>;
  changePassword(input: PasswordChange): Promise<Result<null>>;
  selectTenancy(choice: TenancyChoice): Promise<Result<SessionView>>;
  searchTenancies(search: string): Promise<Result<TenanciesView>>;
  listApiKeys(): Promise<Result<ApiKeysView>>;
  /** While its value shows, the window is protected from screen capture and does not close: until `secretIsGone`. */
  createApiKey(input: CreateApiKey): Promise<Result<CreatedApiKeyView>>;
  secretIsGone(): Promise<void>;
  previewRevocation(id: string): Promise<Result<RevocationView>>;
  revokeApiKey(removal: Removal): Promise<Result<null>>;
  /** The pasted key value is hashed in the main process; only the hash goes to the core. */
  identifyApiKey(keyValue: string): Promise<Result<ApiKeyView | null>>;
  listAccounts(): Promise<Result<AccountsView>>;
  listCampaigns(): Promise<Result<CampaignsView>>;
  listCalls(query: CallQuery): Promise<Result<CallsView>>;
  listUsers(): Promise<Result<{ users: UserView[] }>>;
  /** Guards the window in the same way, for the one-time password. */
  addUser(input: NewUser): Promise<Result<{ user: UserView; password: string }>>;
  previewDeletion(id: string): Promise<Result<DeletionView>>;
  deleteUser(removal: Removal): Promise<Result<null>>;
  listActivity(cursor: string | null): Promise<Result<ActivityView>>;
  /** Copies a secret, and clears the clipboard after a minute and on quitting if it is still there. */
  copySecret(secret: string): Promise<void>;
  /** Closes the window, whatever is showing. */
  closeWindow(): Promise<void>;
};

/** The names of all channels, once each: the compiler sees to it that none is missing. */
export const channelNames: { readonly [Name in keyof Channels]: Name } = {
  begin: 'begin',
  signIn: 'signIn',
  signOut: 'signOut',
  changePassword: 'changePassword',
  selectTenancy: 'selectTenancy',
  searchTenancies: 'searchTenancies',
  listApiKeys: 'listApiKeys',
  createApiKey: 'createApiKey',
  secretIsGone: 'secretIsGone',
  previewRevocation: 'previewRevocation',
  revokeApiKey: 'revokeApiKey',
  identifyApiKey: 'identifyApiKey',
  listAccounts: 'listAccounts',
  listCampaigns: 'listCampaigns',
  listCalls: 'listCalls',
  listUsers: 'listUsers',
  addUser: 'addUser',
  previewDeletion: 'previewDeletion',
  deleteUser: 'deleteUser',
  listActivity: 'listActivity',
  copySecret: 'copySecret',
  closeWindow: 'closeWindow',
};

/** What the menu asks of the renderer. `close` comes when the window is to be closed while a key value shows. */
export const commands = [
  'new-api-key',
  'find',
  'refresh',
  'which-key',
  'show-api-keys',
  'show-calls',
  'show-people',
  'show-activity',
  'switch-tenancy',
  'change-password',
  'sign-out',
  'close',
] as const;
export type Command = (typeof commands)[number];

/** The channel on which main sends commands. */
export const commandChannel = 'command';

/** What the preload exposes, as `window.callkey`. */
export type Bridge = Channels & {
  /** @returns stops listening */
  onCommand(listener: (command: Command) => void): () => void;
};
