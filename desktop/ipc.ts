import type { z } from 'zod';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { SignInOptions, SignInResult } from '#contract/console/sign-in.ts';
import type { FieldError, ProblemCode } from '#contract/problems.ts';
import type { PathParameters, RouteResponse } from '#contract/route.ts';
import type { ConsoleRoutes } from '#contract/routes.ts';
import { screens, showCommand } from './screens.ts';

/** Why a request to the core failed. Each kind needs a different action from the user. */
export type Failure =
  /** Try again. `isUnsent`: the request certainly didn't reach the core. `isOther`: something else responded, as the detail says. */
  | { kind: 'unreachable'; detail: string; isUnsent?: true; isOther?: true }
  /** Sign in again. */
  | { kind: 'session-ended' }
  /** The response came from a core with another generation of the contract. */
  | { kind: 'incompatible'; core: 'older' | 'newer' }
  /** The core refused the request and says why. */
  | { kind: 'refused'; code: ProblemCode; detail: string; errors: FieldError[]; retryAfterSeconds: number | null };

/** Builds a failure like one of the core's. */
export function refusal(code: ProblemCode, detail: string, errors: FieldError[] = []): Failure {
  return { kind: 'refused', code, detail, errors, retryAfterSeconds: null };
}

export type Result<Value> = { ok: true; value: Value } | { ok: false; failure: Failure };

/** Whether sessions can be stored encrypted, or why not. @property isWaiting whether a keyring may still be asking for its password */
export type SessionPersistence = { possible: true } | { possible: false; reason: string; isWaiting?: true };

export const serverColors = ['red', 'orange', 'green', 'blue', 'purple'] as const;
export const maxServerLabel = 40;
/** The user's own name and color for a server, so that production isn't mistaken for a test. */
export type ServerMark = { label?: string | undefined; color?: (typeof serverColors)[number] | undefined };

/** A server that the user has signed in to. */
export type RememberedServer = ServerMark & { address: string; email: string; isSignedIn: boolean };

/** Everything that the page needs before it can show its first screen. */
export type StartupState = {
  /** The server used last; empty at the first start. */
  remembered: { server: string; email: string };
  /** Null in a browser, which always keeps the session until it ends. */
  persistence: SessionPersistence | null;
  /** What the user should know about the sessions that were stored before; null if all is well. */
  notice: string | null;
  /** The app's release. Null in a browser, whose page comes from the server. */
  appVersion: string | null;
  /** The session on that server; null if the user isn't signed in. */
  session: Result<SessionView> | null;
  /** How the sign-in with the provider ended, if the browser has just come back from it. Null in the app. */
  signInResult: SignInResult | null;
};

/** The result of a correct password: the session, or a request for a code. */
export type SignInAnswer = SessionView | { secondFactor: true };

/** A link to a screen of a server. @property address such as `#/calls`, or empty */
export type LinkTarget = { server: string; address: string };

/** @property keepSignedIn null to keep the user's last choice */
export type SignIn = { server: string; email: string; password: string; keepSignedIn: boolean | null };

/** @property staysOnPage whether the page has to stay as it is, so that no typed text is lost */
export type ProviderSignIn = { server: string; keepSignedIn: boolean | null; staysOnPage: boolean };

/** The routes that the page can request: those that require a session, without files and signing out, which has its own function. */
export type RequestName = Exclude<
  { [Name in keyof ConsoleRoutes]: ConsoleRoutes[Name]['by'] extends 'session' ? Name : never }[keyof ConsoleRoutes],
  ExportName | 'signOut'
>;
/** The routes that return CSV files. */
export type ExportName = {
  [Name in keyof ConsoleRoutes]: ConsoleRoutes[Name] extends { answer: 'csv' } ? Name : never;
}[keyof ConsoleRoutes];
/** Null and empty fields of a query aren't sent. */
type QueryFields<Fields> = { [Name in keyof Fields]: Fields[Name] | (undefined extends Fields[Name] ? null | '' : never) };
type RouteFields<Declared> = (Declared extends { query: infer Schema extends z.ZodType } ? QueryFields<z.input<Schema>> : unknown) &
  (Declared extends { body: infer Schema extends z.ZodType } ? z.input<Schema> : unknown);
/** The parameters of a route's path, and the fields of its query or body. */
export type RequestInput<Name extends keyof ConsoleRoutes> = PathParameters<ConsoleRoutes[Name]> & RouteFields<ConsoleRoutes[Name]>;
/** A file to request. @property file its suggested name */
export type ExportRequest = {
  [Name in ExportName]: { name: Name; input: RequestInput<Name>; file: string };
}[ExportName];
/** Null if the response has no body. */
export type RequestAnswer<Name extends keyof ConsoleRoutes> =
  RouteResponse<ConsoleRoutes[Name]> extends undefined ? null : RouteResponse<ConsoleRoutes[Name]>;

/** The differences between the app and a browser. Screens check these, but never whether they're running in the app. */
export type Capabilities = {
  /** The user enters the server. In a browser, it's the one that the page comes from, and reloading updates the page to its release. */
  choosesServer: boolean;
  /** A menu gives each screen a shortcut. Browsers reserve most of these shortcuts. */
  hasMenu: boolean;
  /** Clears a copied secret from the clipboard. */
  guardsSecrets: boolean;
  /** Hides the window from screen capture while a secret is visible. */
  hidesSecrets: boolean;
  /** Whether the connection is private, so that no one on the network can read it. */
  isPrivate: boolean;
};

/**
 * The functions that the main process offers to the page. Each has an IPC channel with the same name, and main checks the sender and input of
 * every call. In a browser, desktop/web implements them in the page.
 */
export type BridgeFunctions = {
  getStartupState(): Promise<StartupState>;
  /** Like `getStartupState`, but waits until the system's encrypted storage has responded. */
  awaitStorage(): Promise<StartupState>;
  /** Lists the servers, last used first. Empty in a browser, whose only server is the one that the page comes from. */
  listServers(): Promise<RememberedServer[]>;
  /** Switches to a remembered server. `getStartupState` then returns that server's state. Sessions with other servers continue. */
  selectServer(address: string): Promise<void>;
  /**
   * Reads a link to a screen, such as `https://calls.example.com/#/calls` or `callkey://calls.example.com/#/calls`. The app asks before it
   * opens a server that the user hasn't signed in to. A browser opens only links to its own server.
   */
  readLink(link: string): Promise<Result<LinkTarget>>;
  /** Sets the user's own name and color for a server. */
  markServer(marked: ServerMark & { address: string }): Promise<void>;
  /** Forgets a server and ends the session there. Fails with `session-ended` if there was no session. */
  forgetServer(address: string): Promise<Result<null>>;
  signIn(input: SignIn): Promise<Result<SignInAnswer>>;
  /** Finishes a sign-in with a code. */
  enterCode(code: string): Promise<Result<SessionView>>;
  /** Returns which ways to sign in a server offers. */
  getSignInOptions(server: string): Promise<Result<SignInOptions>>;
  /**
   * Signs in with the server's provider. The app opens the system's browser. In a browser, this leaves the page or opens another tab, and
   * the value is null. The session then arrives through `onSessionChange`, or from `getStartupState` when the page has loaded again.
   */
  signInWithProvider(input: ProviderSignIn): Promise<Result<SessionView | null>>;
  /** Returns the link that the app has opened in the system's browser; null if the sign-in ended before. */
  readSignInLink(): Promise<string | null>;
  /** Opens that link again. */
  openSignInLink(): Promise<void>;
  /** Cancels the sign-in in progress: stops waiting for the system's browser, and if a session still starts, ends it. */
  cancelSignIn(): Promise<void>;
  /** Opens the page that ends the session at the provider. */
  signOutOfProvider(server: string): Promise<void>;
  /** Hands over the sign-in to the app on this computer, after the browser has finished it at the provider. */
  confirmApp(): Promise<Result<null>>;
  signOut(): Promise<Result<null>>;
  /**
   * Sends a request to the core. If the response contains a secret, the window asks before it closes and is hidden from screen capture if
   * possible, until `dismissSecret` is called.
   */
  request<Name extends RequestName>(name: Name, input: RequestInput<Name>): Promise<Result<RequestAnswer<Name>>>;
  dismissSecret(): Promise<void>;
  /** Says which account or partner the page shows. All later requests are for it, whatever the session has selected. */
  setTenancy(shown: RequestInput<'selectTenancy'>): Promise<void>;
  /** Finds a key by its value, which may be part of a longer text. The value is hashed here, and only the hash is sent to the core. */
  identifyApiKey(keyValue: string): Promise<Result<ApiKeyView | null>>;
  /** Returns how many milliseconds this computer's clock was ahead of the server's at its last response; null before the first one. */
  readClockLead(): Promise<number | null>;
  /** Copies a secret; rejects if the browser forbids it. Main clears it from the clipboard after a minute and on quitting. */
  copySecret(secret: string): Promise<void>;
  /** Saves a secret in a file that only the user can read. Fails in a browser, which can't do this. */
  saveSecret(file: { name: string; text: string }): Promise<Result<true | null>>;
  /** Returns whether the clipboard still holds a secret that was shown or copied here. */
  holdsSecret(): Promise<boolean>;
  /** Copies a text that isn't secret. */
  copyText(text: string): Promise<void>;
  /** Saves a file where the user chooses. The result is null if they cancel. */
  saveFile(file: { name: string; text: string }): Promise<Result<true | null>>;
  /**
   * Saves a file that the core sends. The user chooses where, and it's written as it arrives. Reports its rows to `onExportProgress`. Only
   * one export runs at a time. An incomplete file is discarded. The result is the number of rows, or null if the user cancels.
   */
  saveExport(request: ExportRequest): Promise<Result<number | null>>;
  cancelExport(): Promise<void>;
  /** Says which commands are available at the moment. The menu disables the others. */
  offerCommands(offered: { commands: Command[] }): Promise<void>;
  /** Closes the window without asking. */
  closeWindow(): Promise<void>;
};

/** The names of all functions. The compiler reports a missing one. */
export const functionNames: { readonly [Name in keyof BridgeFunctions]: Name } = {
  getStartupState: 'getStartupState',
  awaitStorage: 'awaitStorage',
  listServers: 'listServers',
  selectServer: 'selectServer',
  readLink: 'readLink',
  markServer: 'markServer',
  forgetServer: 'forgetServer',
  signIn: 'signIn',
  enterCode: 'enterCode',
  getSignInOptions: 'getSignInOptions',
  signInWithProvider: 'signInWithProvider',
  readSignInLink: 'readSignInLink',
  openSignInLink: 'openSignInLink',
  cancelSignIn: 'cancelSignIn',
  signOutOfProvider: 'signOutOfProvider',
  confirmApp: 'confirmApp',
  signOut: 'signOut',
  request: 'request',
  dismissSecret: 'dismissSecret',
  setTenancy: 'setTenancy',
  identifyApiKey: 'identifyApiKey',
  readClockLead: 'readClockLead',
  copySecret: 'copySecret',
  holdsSecret: 'holdsSecret',
  copyText: 'copyText',
  saveFile: 'saveFile',
  saveSecret: 'saveSecret',
  saveExport: 'saveExport',
  cancelExport: 'cancelExport',
  offerCommands: 'offerCommands',
  closeWindow: 'closeWindow',
};

/** The menu's commands. The window sends `close` before it closes while a secret is visible, and `lock` after the computer was idle. */
export const commands = [
  ...screens.map(({ name }) => showCommand(name)),
  'palette',
  'new-api-key',
  'find',
  'refresh',
  'which-key',
  'switch-tenancy',
  'switch-server',
  'help',
  'change-password',
  'sign-out',
  'close',
  'lock',
] as const;
export type Command = (typeof commands)[number];

/** The channels on which main sends commands, links that the system opens, and the number of exported rows. */
export const commandChannel = 'command';
export const linkChannel = 'link';
export const progressChannel = 'export-progress';

/** Available to the page as `window.callkey`. Each function that listens returns one that stops listening. */
export type Bridge = BridgeFunctions & {
  readonly capabilities: Capabilities;
  /** Listens for session changes made by another tab. */
  onSessionChange(listener: (session: Result<SessionView>) => void): () => void;
  onLink(listener: (target: LinkTarget) => void): () => void;
  onExportProgress(listener: (rows: number) => void): () => void;
  onCommand(listener: (command: Command) => void): () => void;
};

/** Keeps commands that arrive while no one is listening for the next listener, in order, so that no click in the menu is lost. */
export class CommandQueue<Command> {
  #waiting: Command[] = [];
  #listener: ((command: Command) => void) | null = null;

  push(command: Command): void {
    if (this.#listener) this.#listener(command);
    else this.#waiting.push(command);
  }

  /** Replaces the listener. @returns a function that stops listening */
  listen(listener: (command: Command) => void): () => void {
    this.#listener = listener;
    for (const command of this.#waiting.splice(0)) listener(command);
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }
}

declare global {
  interface Window {
    /** Provided by the preload script, or by desktop/web in a browser. */
    readonly callkey: Bridge;
  }
}
