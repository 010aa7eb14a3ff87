import { useRef, useState } from 'preact/hooks';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Field, FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { Time } from '../../components/time.tsx';
import { fieldError, generalError } from '../../state/format/failure-text.ts';
import { KeyAccess } from './key-access.tsx';
import { Expiry, OwnerTag } from './list/api-key-table.tsx';

type WhichKeyProps = {
  isListed: (id: string) => boolean;
  onFound: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
  onClose: () => void;
};

type Answer = { apiKey: ApiKeyView | null };

/** Finds the key that a value belongs to. The value is hashed on this computer and goes nowhere else. */
export function WhichKey({ isListed, onFound, onRevoke, onClose }: WhichKeyProps) {
  const input = useRef<HTMLInputElement>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const { isBusy, failure, form, run } = useAction();

  function submit(event: Event): void {
    event.preventDefault();
    const keyValue = input.current?.value ?? '';
    setAnswer(null);
    void run(
      () => window.callkey.identifyApiKey(keyValue),
      (apiKey) => {
        if (input.current) input.current.value = '';
        if (apiKey && isListed(apiKey.id)) onFound(apiKey);
        else setAnswer({ apiKey });
      },
    );
  }

  return (
    <Dialog title="Which key is this?" onDismiss={onClose}>
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Key value"
          error={fieldError(failure, 'keyValue')}
          hint="Paste a key value you found. It stays on this computer: only its hash is sent to the server."
        >
          {(binding) => <input {...binding} ref={input} type="password" autocomplete="off" spellcheck={false} data-autofocus />}
        </Field>
        <FormError text={generalError(failure, ['keyValue'])} />
        <div role="status">{answer && <Found apiKey={answer.apiKey} onRevoke={onRevoke} />}</div>
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

function Found({ apiKey, onRevoke }: { apiKey: ApiKeyView | null; onRevoke: (key: ApiKeyView) => void }) {
  if (!apiKey)
    return (
      <p class="notice">
        None of the keys you can see has this value. It may have been revoked, belong to someone else, or come from another server.
      </p>
    );
  return (
    <div class="notice">
      <p>
        This is <strong>{apiKey.name}</strong>, an older key that isn’t in the list. {apiKey.owner && <OwnerTag owner={apiKey.owner} />}
      </p>
      <p>
        Last used: {apiKey.lastUsedAt === null ? 'Never' : <Time at={apiKey.lastUsedAt} />} · <Expiry apiKey={apiKey} />
      </p>
      <KeyAccess id={apiKey.id} />
      <button type="button" onClick={() => onRevoke(apiKey)}>
        Revoke…
      </button>
    </div>
  );
}
