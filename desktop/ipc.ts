import type { CallState } from '#contract/calls/states.ts';
import type {
  AccountsView,
  ActivityFacetsView,
  ActivityView,
  AllCallsSummaryView,
  ApiKeyDetailsView,
  ApiKeysView,
  ApiKeyView,
  CallDetailsView,
  CallsSummaryView,
  CallsView,
  CampaignsView,
  ChangedUserView,
  CreateApiKey,
  CreatedApiKeyView,
  DeletionView,
  Named,
  PasswordChange,
  RecordExport,
  ResetPasswordView,
  RevocationView,
  RevokeApiKeys,
  RevokedApiKeysView,
  SessionView,
  Setup,
  TenanciesView,
  TenancyKind,
  UsersView,
  UserType,
  UserView,
} from '#contract/console.ts';
import type { FieldError, ProblemCode } from '#contract/problems.ts';
import { screens, showCommand } from './screens.ts';

/** Why a request to the core failed. Each kind needs a different action from the user. */
export type Failure =
  /** The core didn't respond: try again. */
  | { kind: 'unreachable'; detail: string }
  /** Sign in again. */
  | { kind: 'session-ended' }
  /** The response came from a core of another generation, or from a different kind of server. */
  | { kind: 'incompatible'; core: 'older' | 'newer' | 'unknown' }
  /** The core refused the request and says why. */
  | { kind: 'refused'; code: ProblemCode; detail: string; errors: FieldError[]; retryAfterSeconds: number | null };

export type Result<Value> = { ok: true; value: Value } | { ok: false; failure: Failure };

/** Whether the system's encrypted storage can keep a session, and if not, why. The sign-in form shows the reason. */
export type SessionPersistence = { possible: true } | { possible: false; reason: string };

/** A server that the user has signed in to. */
export type RememberedServer = { address: string; email: string; isSignedIn: boolean };

/** What the page needs before it can show its first screen. */
export type StartupState = {
  /** The last server used; empty at the first start. */
  remembered: { server: string; email: string };
  /** Null if the user has no choice: the browser keeps the session until it ends. */
  persistence: SessionPersistence | null;
  /** The session on that server; null if there is none. */
  session: Result<SessionView> | null;
};

/** @property keepSignedIn null keeps the last choice */
export type SignIn = { server: string; email: string; password: string; keepSignedIn: boolean | null };
export type TenancyChoice = { kind: TenancyKind; id: string } | { kind: null };
/** A page of a list: the text that its names contain, and the cursor where it starts. */
export type ListQuery = { search: string; cursor: string | null };
export type DirectoryKind = 'partner' | 'account' | 'campaign';
/** A partner, account or campaign. `count` is the number of its accounts or campaigns; null for a campaign. */
export type DirectoryEntry = Named & { kind: DirectoryKind; partner: Named | null; account: Named | null; count: number | null };
export type DirectoryPage = { entries: DirectoryEntry[]; nextCursor: string | null };
/** @property parentId the partner whose accounts are listed, or the account whose campaigns are listed; null for all */
export type DirectoryQuery = ListQuery & { kind: DirectoryKind; parentId: string | null };
/** @property parentId its partner or account; empty for a partner */
export type NewEntry = { kind: DirectoryKind; name: string; parentId: string };
/** Days as YYYY-MM-DD, inclusive. An empty text doesn't filter. */
type DayFilter = { from: string; to: string; timeZone: string };
export type CallFilter = DayFilter & { state: CallState | null; apiKey: string; search: string };
type CallQuery = CallFilter & { campaignId: string; cursor: string | null };
/** @property actor a user's ID, or `operator` */
export type ActivityFilter = DayFilter & { actor: string; action: string };
type NewUser = { email: string; name: string; userType: UserType; accountId?: string | undefined };
/** Only the given fields change. */
export type UserChange = { id: string; name?: string | undefined; disabled?: boolean | undefined; accountId?: string | null | undefined };
export type Deletion = { id: string; cancelQueuedCalls: boolean };

/** The differences between the app and a browser. Screens check these, and never where they're running. */
export type Capabilities = {
  /**
   * The user enters the server. In a browser, it's the one that the page comes from, and reloading the page updates it to the right
   * release.
   */
  choosesServer: boolean;
  /** A menu gives each screen a shortcut. Browsers reserve most of those. */
  hasMenu: boolean;
  /** Hides the window from screen capture while a secret is visible, and clears a copied secret from the clipboard. */
  guardsSecrets: boolean;
  /** No one on the network can read what the page sends and receives. */
  isPrivate: boolean;
};

/**
 * The functions that the main process offers to the page. Each is a channel with the same name, and main checks the sender and input of
 * every call. In a browser, desktop/web implements them in the page.
 */
export type Channels = {
  getStartupState(): Promise<StartupState>;
  /** The last one used comes first. Empty in a browser, whose only server is the one that the page comes from. */
  listServers(): Promise<RememberedServer[]>;
  /** Switches to a remembered server, for which `getStartupState` then returns the state. The sessions with other servers continue. */
  selectServer(address: string): Promise<void>;
  /** Forgets a server and ends the session there. Fails with `session-ended` if there was none. */
  forgetServer(address: string): Promise<Result<null>>;
  signIn(input: SignIn): Promise<Result<SessionView>>;
  signOut(): Promise<Result<null>>;
  changePassword(input: PasswordChange): Promise<Result<null>>;
  selectTenancy(choice: TenancyChoice): Promise<Result<SessionView>>;
  /** Creates the first partner, account and campaign. Selects the account for the session. */
  setUp(names: Setup): Promise<Result<SessionView>>;
  searchTenancies(search: string): Promise<Result<TenanciesView>>;
  /** The newest keys. */
  listApiKeys(): Promise<Result<ApiKeysView>>;
  /** The newest keys that are older than the one with this ID. */
  listOlderApiKeys(olderThan: string): Promise<Result<ApiKeysView>>;
  /** Until `dismissSecret`, the window asks before it closes, and is hidden from screen capture if possible. */
  createApiKey(input: CreateApiKey): Promise<Result<CreatedApiKeyView>>;
  dismissSecret(): Promise<void>;
  previewRevocation(id: string): Promise<Result<RevocationView>>;
  revokeApiKey(input: Deletion): Promise<Result<null>>;
  getApiKey(input: { id: string; timeZone: string }): Promise<Result<ApiKeyDetailsView>>;
  revokeApiKeys(input: RevokeApiKeys): Promise<Result<RevokedApiKeysView>>;
  /** The pasted key value is hashed here, and only the hash goes to the core. */
  identifyApiKey(keyValue: string): Promise<Result<ApiKeyView | null>>;
  listAccounts(query: ListQuery): Promise<Result<AccountsView>>;
  listCampaigns(query: ListQuery): Promise<Result<CampaignsView>>;
  listCalls(query: CallQuery): Promise<Result<CallsView>>;
  getCall(input: { campaignId: string; contactId: string }): Promise<Result<CallDetailsView>>;
  summarizeCalls(input: { campaignId: string; timeZone: string }): Promise<Result<CallsSummaryView>>;
  /** For the campaigns that `listCampaigns` returns for the same query. */
  summarizeAllCalls(query: ListQuery & { timeZone: string }): Promise<Result<AllCallsSummaryView>>;
  listDirectory(query: DirectoryQuery): Promise<Result<DirectoryPage>>;
  createEntry(input: NewEntry): Promise<Result<DirectoryEntry>>;
  renameEntry(input: { kind: DirectoryKind; id: string; name: string }): Promise<Result<DirectoryEntry>>;
  listUsers(query: ListQuery): Promise<Result<UsersView>>;
  /** Protects the window like `createApiKey`, for the one-time password. */
  createUser(input: NewUser): Promise<Result<{ user: UserView; password: string }>>;
  /** Ends the user's sessions. Protects the window like `createApiKey`, for the new one-time password. */
  resetPassword(id: string): Promise<Result<ResetPasswordView>>;
  previewDeletion(id: string): Promise<Result<DeletionView>>;
  changeUser(input: UserChange): Promise<Result<ChangedUserView>>;
  deleteUser(input: Deletion): Promise<Result<null>>;
  listActivity(query: ActivityFilter & { cursor: string | null }): Promise<Result<ActivityView>>;
  /** The users and actions that can be filtered by. */
  listActivityFacets(): Promise<Result<ActivityFacetsView>>;
  /** Records an event for a list that was saved as a file. */
  recordExport(input: RecordExport): Promise<Result<null>>;
  /**
   * Copies a secret; rejects if the browser forbids it. Main clears the clipboard after a minute and on quitting if the secret is still
   * there.
   */
  copySecret(secret: string): Promise<void>;
  /** Copies a text that isn't secret. */
  copyText(text: string): Promise<void>;
  /** Saves a file where the user chooses. @returns false if they cancel */
  saveFile(file: { name: string; text: string }): Promise<boolean>;
  /** The commands that are available at the moment. The menu disables the others. */
  offerCommands(offered: { commands: Command[] }): Promise<void>;
  /** Closes the window without asking. */
  closeWindow(): Promise<void>;
};

/** The names of all channels. The compiler reports a missing one. */
export const channelNames: { readonly [Name in keyof Channels]: Name } = {
  getStartupState: 'getStartupState',
  listServers: 'listServers',
  selectServer: 'selectServer',
  forgetServer: 'forgetServer',
  signIn: 'signIn',
  signOut: 'signOut',
  changePassword: 'changePassword',
  selectTenancy: 'selectTenancy',
  setUp: 'setUp',
  searchTenancies: 'searchTenancies',
  listApiKeys: 'listApiKeys',
  listOlderApiKeys: 'listOlderApiKeys',
  createApiKey: 'createApiKey',
  dismissSecret: 'dismissSecret',
  previewRevocation: 'previewRevocation',
  revokeApiKey: 'revokeApiKey',
  getApiKey: 'getApiKey',
  revokeApiKeys: 'revokeApiKeys',
  identifyApiKey: 'identifyApiKey',
  listAccounts: 'listAccounts',
  listCampaigns: 'listCampaigns',
  listCalls: 'listCalls',
  getCall: 'getCall',
  summarizeCalls: 'summarizeCalls',
  summarizeAllCalls: 'summarizeAllCalls',
  listDirectory: 'listDirectory',
  createEntry: 'createEntry',
  renameEntry: 'renameEntry',
  listUsers: 'listUsers',
  createUser: 'createUser',
  resetPassword: 'resetPassword',
  previewDeletion: 'previewDeletion',
  changeUser: 'changeUser',
  deleteUser: 'deleteUser',
  listActivity: 'listActivity',
  listActivityFacets: 'listActivityFacets',
  recordExport: 'recordExport',
  copySecret: 'copySecret',
  copyText: 'copyText',
  saveFile: 'saveFile',
  offerCommands: 'offerCommands',
  closeWindow: 'closeWindow',
};

/**
 * The commands that the menu sends to the renderer, and `close`, with which the window asks the page before it closes while a secret is
 * visible.
 */
export const commands = [
  ...screens.map(({ name }) => showCommand(name)),
  'palette',
  'new-api-key',
  'find',
  'refresh',
  'which-key',
  'switch-tenancy',
  'switch-server',
  'change-password',
  'sign-out',
  'close',
] as const;
export type Command = (typeof commands)[number];

/** Main sends commands on this channel. */
export const commandChannel = 'command';

/** Available to the page as `window.callkey`. */
export type Bridge = Channels & {
  readonly capabilities: Capabilities;
  /**
   * Listens for session changes made by another tab.
   *
   * @returns a function that stops listening
   */
  onSessionChange(listener: (session: Result<SessionView>) => void): () => void;
  /** @returns a function that stops listening */
  onCommand(listener: (command: Command) => void): () => void;
};
