import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Failure } from '../../../ipc.ts';
import { FormError } from '../../components/forms/field.tsx';
import { TextField } from '../../components/forms/text-field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useAutofocus } from '../../components/forms/use-autofocus.ts';
import { Mark } from '../../components/mark.tsx';
import { hasOtherServers, useCommands } from '../../state/commands.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { email, server, signIn, signOutFailed, startupState } from '../../state/session.ts';
import { EnterCode } from './enter-code.tsx';
import { ProviderButton, ProviderNotices, useSignInOptions } from './provider-sign-in.tsx';
import { Servers } from './servers.tsx';

export function SignIn() {
  const { choosesServer, isPrivate } = window.callkey.capabilities;
  const persistence = startupState.value?.persistence ?? null;
  const [remembered] = useState({ server: server.peek(), email: email.peek() });
  const canKeep = persistence?.possible === true;
  const [password, setPassword] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const [keepSignedIn, setKeep] = useState(false);
  const [isChoosingServer, setChoosingServer] = useState(false);
  const { isBusy, failure, form, setError, run } = useAction();
  // Not updated on every keystroke, because a half-typed address may be someone else's server.
  const [optionsServer, setOptionsServer] = useState(server.peek());
  const options = useSignInOptions(optionsServer);
  useAutofocus(form);
  useOtherServers(setChoosingServer);

  function startOver(): void {
    void window.callkey.cancelSignIn();
    setPassword('');
    setNeedsCode(false);
  }

  function submit(event: Event): void {
    event.preventDefault();
    if (!options.password) return;
    const missing = missingFields({ server: server.value, email: email.value, password });
    const input = { server: server.value.trim(), email: email.value, password, keepSignedIn };
    if (missing) setError(missing);
    else
      void run(
        () => signIn(input),
        (answer) => setNeedsCode(!('viewer' in answer)),
      );
  }

  if (needsCode) return <EnterCode onBack={startOver} />;

  return (
    <main class="entrance">
      <form
        ref={form}
        class="card"
        onSubmit={submit}
        onFocusOut={() => setOptionsServer(server.value)}
        noValidate
        aria-labelledby="sign-in-title"
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
        {signOutFailed.value && (
          <p class="notice" role="alert">
            The server didn’t respond, so your session wasn’t ended. It expires after a day without use.
          </p>
        )}
        {choosesServer && (
          <TextField
            label="Server address"
            error={fieldError(failure, 'server')}
            hint="For example, https://calls.example.com"
            type="text"
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
              label="Email"
              error={fieldError(failure, 'email')}
              type="email"
              autocomplete="username"
              value={email.value}
              onInput={(typed) => {
                email.value = typed;
              }}
              autofocus={remembered.server !== '' && remembered.email === ''}
            />
            <TextField
              label="Password"
              error={fieldError(failure, 'password')}
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
        <FormError text={failure ? generalError(failure, ['server', 'email', 'password']) : options.problem} />
        {options.password && (
          <button type="submit" class="primary" aria-disabled={isBusy}>
            {isBusy ? 'Signing in…' : 'Sign in'}
          </button>
        )}
        {options.oidc && (
          <ProviderButton key={server.value} name={options.oidc.name} keepSignedIn={keepSignedIn} isPrimary={!options.password} />
        )}
        {hasOtherServers.value && (
          <button type="button" class="quiet" onClick={() => setChoosingServer(true)}>
            Switch server
          </button>
        )}
      </form>
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

function missingFields(fields: { server: string; email: string; password: string }): Failure | null {
  const messages = { server: 'Enter the address of your server.', email: 'Enter your email address.', password: 'Enter your password.' };
  const errors = (['server', 'email', 'password'] as const).flatMap((path) =>
    fields[path].trim() === '' ? [{ path, message: messages[path] }] : [],
  );
  const [first] = errors;
  return first ? { kind: 'refused', code: 'invalid', detail: first.message, errors, retryAfterSeconds: null } : null;
}
