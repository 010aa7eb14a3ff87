import { useEffect, useMemo, useState } from 'preact/hooks';
import type { SignInOptions, SignInResult } from '#contract/console/sign-in.ts';
import type { Result } from '../../../ipc.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useRetries } from '../../components/loadable.tsx';
import { describeFailure, generalError, isTransient } from '../../state/format/failure-text.ts';
import { Resource } from '../../state/loading/resource.ts';
import { leftProvider, server, signInResult, signInWithProvider } from '../../state/session.ts';

/** Used until a core has responded. Signing in says what's wrong with a server that can't be used. */
const passwordOnly: SignInOptions = { password: true, oidc: null };

async function loadOptions(address: string): Promise<Result<SignInOptions>> {
  const result: Result<SignInOptions> | null = address.trim() === '' ? null : await window.callkey.getSignInOptions(address);
  return result && (result.ok || isTransient(result.failure)) ? result : { ok: true, value: passwordOnly };
}

/**
 * Asks a server which ways to sign in it offers. Retries while the server is unreachable, because only the password form is shown until it
 * responds.
 *
 * @param address empty if no server is chosen yet
 */
export function useSignInOptions(address: string): SignInOptions & { problem: string | null } {
  const resource = useMemo(() => new Resource(() => loadOptions(address), passwordOnly), [address]);
  useEffect(() => void resource.refresh(), [resource]);
  useRetries(resource);
  const { value, failure } = resource.state.value;
  const problem = failure && isTransient(failure) ? `${describeFailure(failure)} The console retries every few seconds.` : null;
  return { ...(value ?? passwordOnly), problem };
}

type ButtonProps = { name: string; keepSignedIn: boolean | null; staysOnPage?: boolean; isPrimary: boolean };

/** Shows the button for signing in with the provider, and what happened the last time. */
export function ProviderButton({ name, keepSignedIn, staysOnPage = false, isPrimary }: ButtonProps) {
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
      <FormError text={generalError(failure, [])} />
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
      <div class="actions at-start">
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
export function ProviderNotices({ oidc }: Pick<SignInOptions, 'oidc'>) {
  const text = signInResult.value && resultTexts[signInResult.value];
  return (
    <>
      {text && (
        <p class="notice" role="alert">
          {text}
        </p>
      )}
      {leftProvider.value && oidc?.signOutUrl && (
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
