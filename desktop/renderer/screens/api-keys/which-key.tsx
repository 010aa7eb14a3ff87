import { useRef, useState } from 'preact/hooks';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Field, FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { fieldError, generalError } from '../../state/format/failure-text.ts';

type WhichKeyProps = { onFound: (key: ApiKeyView) => void; onClose: () => void };

/** Finds the key that a value belongs to. The value is hashed on this computer and never leaves it. */
export function WhichKey({ onFound, onClose }: WhichKeyProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isUnknown, setUnknown] = useState(false);
  const { isBusy, failure, form, run } = useAction();

  function submit(event: Event): void {
    event.preventDefault();
    const pasted = input.current?.value ?? '';
    setUnknown(false);
    void run(
      () => window.callkey.identifyApiKey(pasted),
      (apiKey) => {
        if (input.current) input.current.value = '';
        if (apiKey) onFound(apiKey);
        else setUnknown(true);
      },
    );
  }

  return (
    <Dialog title="Which key is this?" onDismiss={onClose}>
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Key value"
          error={fieldError(failure, 'keyValue')}
          hint="Paste a key value you found, or the line it’s in. It stays on this computer: only its hash is sent to the server."
        >
          {(binding) => <input {...binding} ref={input} type="password" autocomplete="off" spellcheck={false} data-autofocus />}
        </Field>
        <FormError text={generalError(failure, ['keyValue'])} />
        <div role="status">
          {isUnknown && (
            <p class="notice">
              None of the keys you can see has this value. The key may have been revoked, belong to someone else, or come from another
              server.
            </p>
          )}
        </div>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy}>
            Find key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
