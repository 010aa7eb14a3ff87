import { useCallback, useEffect, useState } from 'preact/hooks';
import type { SignInOptions, SignInResult } from '#contract/console/sign-in.ts';
import type { Result, SignInAnswer } from '../../../ipc.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import {
  CodeField,
  ErrorText,
  Form,
  FormError,
  HiddenUsername,
  SubmitButton,
  TextField,
  useAction,
  useFieldError,
  useForm,
} from '../../components/form.tsx';
import { Mark } from '../../components/icons.tsx';
import { useList } from '../../components/list.tsx';
import { announce } from '../../state/announcement.ts';
import { hasOtherServers, useCommands } from '../../state/commands.ts';
import { describeFailure, generalError, isTransient } from '../../state/failure-text.ts';
import {
  arrival,
  dismissArrival,
  email,
  enterCode,
  enterCodeAgain,
  leave,
  server,
  session,
  signIn,
  signInAgain,
  signInWithProvider,
  startupState,
} from '../../state/session.ts';
import { Servers } from './connection.tsx';

export function SignIn() {
  const { choosesServer, isPrivate } = window.callkey.capabilities;
  const persistence = startupState.value?.persistence ?? null;
  const [remembered] = useState({ server: server.peek(), email: email.peek() });
  const canKeep = persistence?.possible === true;
  const [password, setPassword] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const [keepSignedIn, setKeep] = useState(false);
  const [isChoosingServer, setChoosingServer] = useState(false);
  // Not updated on every keystroke, because a half-typed address may be someone else's server.
  const [optionsServer, setOptionsServer] = useState(server.peek());
  const options = useSignInOptions(optionsServer);
  useOtherServers(setChoosingServer);

  function startOver(): void {
    void window.callkey.cancelSignIn();
    setPassword('');
    setNeedsCode(false);
  }
  const missing = (text: string, problem: string) => (text.trim() === '' ? problem : null);
  const problems = {
    server: missing(server.value, 'Enter the address of your server.'),
    email: missing(email.value, 'Enter your email address.'),
    password: missing(password, 'Enter your password.'),
  };

  if (needsCode) return <EnterCode onBack={startOver} />;

  return (
    <main class="entrance">
      <Form
        class="card"
        aria-labelledby="sign-in-title"
        onFocusOut={() => setOptionsServer(server.value)}
        isReady={options.password}
        problems={options.password ? problems : {}}
        act={() => signIn({ server: server.value.trim(), email: email.value, password, keepSignedIn })}
        onDone={(answer) => setNeedsCode(!('viewer' in answer))}
      >
        <Mark />
        <h1 id="sign-in-title">Sign in</h1>
        {!isPrivate && (
          <p class="notice">
            This connection isn’t encrypted. Others on the network can read your password and keys. Open the console at an https address.
          </p>
        )}
        {startupState.value?.notice && (
          <p class="notice" role="status">
            {startupState.value.notice}
          </p>
        )}
        <ProviderNotices oidc={options.oidc} />
        {arrival.value?.by === 'sign-out' && arrival.value.hasFailed && (
          <p class="notice" role="alert">
            The server didn’t respond, so your session wasn’t ended. It expires after a day without use.
          </p>
        )}
        {choosesServer && (
          <TextField
            name="server"
            label="Server address"
            hint="For example, https://calls.example.com"
            inputMode="url"
            spellcheck={false}
            autocomplete="url"
            value={server.value}
            onInput={(typed) => {
              server.value = typed;
            }}
            autofocus={remembered.server === ''}
          />
        )}
        {options.password && (
          <>
            <TextField
              name="email"
              label="Email"
              type="email"
              autocomplete="username"
              value={email.value}
              onInput={(typed) => {
                email.value = typed;
              }}
              autofocus={remembered.server !== '' && remembered.email === ''}
            />
            <TextField
              name="password"
              label="Password"
              type="password"
              autocomplete="current-password"
              value={password}
              onInput={setPassword}
              autofocus={remembered.server !== '' && remembered.email !== ''}
            />
          </>
        )}
        {persistence ? (
          <div class="check">
            <input
              id="keep"
              type="checkbox"
              checked={keepSignedIn && canKeep}
              disabled={!canKeep}
              aria-describedby={canKeep ? undefined : 'keep-reason'}
              onChange={({ currentTarget }) => setKeep(currentTarget.checked)}
            />
            <label for="keep">Keep me signed in</label>
            {!persistence.possible && (
              <p id="keep-reason" class="hint">
                {persistence.reason}
              </p>
            )}
          </div>
        ) : (
          <p class="hint">You’ll stay signed in on this browser for up to seven days. On a shared computer, sign out when you’re done.</p>
        )}
        <FormError otherwise={options.problem} />
        {options.password && <SubmitButton verb="Sign in" verbing="Signing in…" />}
        {options.oidc && (
          <ProviderButton key={server.value} name={options.oidc.name} keepSignedIn={keepSignedIn} isPrimary={!options.password} />
        )}
        {hasOtherServers.value && (
          <button type="button" class="quiet" onClick={() => setChoosingServer(true)}>
            Switch server
          </button>
        )}
      </Form>
      {isChoosingServer && <Servers onClose={() => setChoosingServer(false)} />}
    </main>
  );
}

/** Offers the servers that the user has signed in to, here and in the menu. */
function useOtherServers(setChoosing: (isChoosing: boolean) => void): void {
  useEffect(() => {
    void window.callkey.listServers().then(({ length }) => {
      hasOtherServers.value = length > 0;
    });
    return () => {
      hasOtherServers.value = false;
    };
  }, []);
  // Drops the other commands. Otherwise, a "Sign Out" on this screen would end the next session.
  useCommands(
    useCallback((command) => {
      if (command === 'switch-server' && hasOtherServers.peek()) setChoosing(true);
    }, []),
  );
}

/** The step of a sign-in after the password, for users with a second factor. */
function EnterCode({ onBack }: { onBack: () => void }) {
  const [code, setCode] = useState('');
  return (
    <main class="entrance">
      <Form class="card" aria-labelledby="code-title" isReady={code.trim() !== ''} act={() => enterCode(code)}>
        <Mark />
        <h1 id="code-title">Enter your code</h1>
        <CodeField value={code} onInput={setCode} autofocus />
        <FormError />
        <SubmitButton verb="Sign in" verbing="Signing in…" />
        <BackButton onBack={onBack} />
      </Form>
    </main>
  );
}

function BackButton({ onBack }: { onBack: () => void }) {
  const { unlessBusy } = useForm();
  return (
    <button type="button" class="quiet" onClick={unlessBusy(onBack)}>
      Back
    </button>
  );
}

/** Used until a core has responded. Signing in says what's wrong with a server that can't be used. */
const passwordOnly: SignInOptions = { password: true, oidc: null };

async function loadOptions(address: string): Promise<Result<SignInOptions>> {
  const result: Result<SignInOptions> | null = address.trim() === '' ? null : await window.callkey.getSignInOptions(address);
  return result && (result.ok || isTransient(result.failure)) ? result : { ok: true, value: passwordOnly };
}

/** Asks a server how users sign in. Retries, because until it responds, only the password form is shown. @param address may be empty */
function useSignInOptions(address: string): SignInOptions & { problem: string | null } {
  const load = () => loadOptions(address);
  const { view, failure } = useList({ key: `sign-in/${address}`, every: null, initial: passwordOnly, load }).state.value;
  const problem = failure && isTransient(failure) ? `${describeFailure(failure)} The console retries every few seconds.` : null;
  return { ...(view ?? passwordOnly), problem };
}

type ButtonProps = { name: string; keepSignedIn: boolean | null; staysOnPage?: boolean; isPrimary: boolean };

function ProviderButton({ name, keepSignedIn, staysOnPage = false, isPrimary }: ButtonProps) {
  const { isBusy, failure, run } = useAction();
  // In the app, the sign-in continues in the system's browser until it's done or cancelled.
  const isWaiting = isBusy && window.callkey.capabilities.choosesServer;

  return (
    <>
      {isWaiting ? (
        <ContinueInBrowser />
      ) : (
        <button
          type="button"
          class={isPrimary ? 'primary' : undefined}
          aria-disabled={isBusy}
          onClick={() => void run(() => signInWithProvider({ server: server.value.trim(), keepSignedIn, staysOnPage }))}
        >
          Sign in with {name}
        </button>
      )}
      <ErrorText text={generalError(failure)} />
    </>
  );
}

/** Without a default browser, systems may open nothing and report no error, so the link can also be copied. */
function ContinueInBrowser() {
  const [link, setLink] = useState<string | null>(null);
  useEffect(() => void window.callkey.readSignInLink().then(setLink), []);
  return (
    <>
      <p class="notice" role="status">
        Continue in your browser. The app signs you in when you’re done there. If no page has opened, open it again, or paste its link into
        a browser on this computer.
      </p>
      <div class="row">
        <button type="button" onClick={() => void window.callkey.openSignInLink()}>
          Open again
        </button>
        {link !== null && <CopyButton text={link} noun="link" label="Copy link" />}
        <button type="button" onClick={() => void window.callkey.cancelSignIn()}>
          Cancel
        </button>
      </div>
    </>
  );
}

const resultTexts: Readonly<Record<SignInResult, string | null>> = {
  done: null,
  app: null,
  failed:
    'You couldn’t be signed in. Check that you used the right account. If you did, ask your administrator whether there’s a user here with that account’s email address.',
  unreachable: 'The provider isn’t responding. Try again in a moment. If that doesn’t help, ask your administrator.',
  expired: 'This sign-in took too long, or started in another browser. Try again.',
  cancelled: 'The sign-in was cancelled.',
  throttled: 'Too many sign-ins have failed from your network. Try again in 15 minutes.',
};

/** Says how the last sign-in with the provider ended, or that signing out here didn't sign the user out at the provider. */
function ProviderNotices({ oidc }: Pick<SignInOptions, 'oidc'>) {
  const came = arrival.value;
  const text = came?.by === 'provider' ? resultTexts[came.result] : null;
  return (
    <>
      {text && (
        <p class="notice" role="alert">
          {text}
        </p>
      )}
      {came?.by === 'sign-out' && came.usedProvider && oidc?.signOutUrl && (
        <p class="notice" role="status">
          You’re signed out of Callkey, but you may still be signed in to {oidc.name}.{' '}
          <button type="button" class="quiet" onClick={() => void window.callkey.signOutOfProvider(server.value)}>
            Sign out of {oidc.name}
          </button>
          {window.callkey.capabilities.choosesServer && <CopyButton text={oidc.signOutUrl} noun="sign-out link" />}
        </p>
      )}
    </>
  );
}

/** Asks the user to sign in again, in a dialog over the current screen, so that typed text isn't lost. */
export function SessionEnded() {
  const [password, setPassword] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const [code, setCode] = useState('');
  const options = useSignInOptions(server.value);
  const isEmpty = password === '' || (needsCode && code.trim() === '');
  return (
    <Dialog
      title="Your session has ended"
      lead={
        <>
          Sign in again as <strong>{session.value?.viewer.email ?? ''}</strong>. Your work on this screen is kept.
        </>
      }
      isAlert
    >
      <Form<SignInAnswer>
        isReady={!isEmpty}
        act={() => (needsCode ? enterCodeAgain(code) : signInAgain(password))}
        onDone={(answer) => setNeedsCode(!('viewer' in answer))}
        // Signing in closes this dialog.
        onDoneUnmounted={() => announce('Signed in again. Your work is as you left it.')}
      >
        {needsCode && <CodeField value={code} onInput={setCode} autofocus />}
        {options.password && !needsCode && <PasswordAgain value={password} onInput={setPassword} />}
        {options.oidc && !needsCode && (
          <ProviderButton name={options.oidc.name} keepSignedIn={null} staysOnPage isPrimary={!options.password} />
        )}
        <FormError otherwise={options.problem} saysEverything />
        <AgainActions
          hasPassword={options.password}
          onBack={
            needsCode
              ? () => {
                  setPassword('');
                  setNeedsCode(false);
                  setCode('');
                }
              : null
          }
        />
      </Form>
    </Dialog>
  );
}

function PasswordAgain(input: { value: string; onInput: (password: string) => void }) {
  const isWrong = useFieldError('password') !== null;
  return (
    <>
      <HiddenUsername />
      <TextField
        label="Password"
        error={isWrong ? 'Incorrect password.' : null}
        type="password"
        autocomplete="current-password"
        autofocus
        {...input}
      />
    </>
  );
}

type AgainActionsProps = { hasPassword: boolean; onBack: (() => void) | null };

function AgainActions({ hasPassword, onBack }: AgainActionsProps) {
  const { isBusy, unlessBusy, clearError } = useForm();
  const goBack = () => {
    onBack?.();
    clearError();
  };
  return (
    <div class="actions">
      <button type="button" aria-disabled={isBusy} onClick={unlessBusy(leave)}>
        Discard and sign out
      </button>
      {onBack && (
        <button type="button" aria-disabled={isBusy} onClick={unlessBusy(goBack)}>
          Back
        </button>
      )}
      {hasPassword && <SubmitButton verb="Sign in again" verbing="Signing in…" />}
    </div>
  );
}

/** Asks before handing the sign-in over to a program on this computer. Otherwise, any link could do that. */
export function ConfirmApp() {
  const { isBusy, failure, run } = useAction();
  const [isOver, setOver] = useState(false);
  return (
    <main class="entrance">
      <div class="card">
        <Mark />
        <h1>Sign in to the app?</h1>
        {isOver ? (
          <p role="status">Go back to the Callkey app. You can close this tab.</p>
        ) : (
          <>
            <p>
              The Callkey app on this computer wants to sign in as you. Continue only if you just started signing in there. If you came here
              from a link, cancel.
            </p>
            <ErrorText text={failure?.kind === 'session-ended' ? 'This took too long. Start again in the app.' : generalError(failure)} />
            <div class="actions">
              <button type="button" onClick={dismissArrival}>
                Cancel
              </button>
              <button
                type="button"
                class="primary"
                aria-disabled={isBusy}
                onClick={() =>
                  void run(
                    () => window.callkey.confirmApp(),
                    () => setOver(true),
                  )
                }
              >
                Sign in to the app
              </button>
            </div>
          </>
        )}
      </div>
    </main>
  );
}
