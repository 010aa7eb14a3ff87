import { useState } from 'preact/hooks';
import { CodeField } from '../../components/forms/confirm-with-code.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { useAutofocus } from '../../components/forms/use-autofocus.ts';
import { Mark } from '../../components/mark.tsx';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { enterCode } from '../../state/session.ts';

/** The step of a sign-in after the password, for users with a second factor. */
export function EnterCode({ onBack }: { onBack: () => void }) {
  const [code, setCode] = useState('');
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  useAutofocus(form);
  return (
    <main class="entrance">
      <form
        ref={form}
        class="card"
        noValidate
        aria-labelledby="code-title"
        onSubmit={(event) => {
          event.preventDefault();
          if (code.trim() !== '') void run(() => enterCode(code));
        }}
      >
        <Mark />
        <h1 id="code-title">Enter your code</h1>
        <CodeField error={fieldError(failure, 'code')} value={code} onInput={setCode} autofocus />
        <FormError text={generalError(failure, ['code'])} />
        <button type="submit" class="primary" aria-disabled={isBusy || code.trim() === ''}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
        <button type="button" class="quiet" onClick={unlessBusy(onBack)}>
          Back
        </button>
      </form>
    </main>
  );
}
