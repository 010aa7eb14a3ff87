import { useRef, useState } from 'preact/hooks';
import type { ApiKeyView } from '#contract/console.ts';
import type { Failure } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { Field, FormError, focusFirstInvalid } from '../components/field.tsx';
import { Time } from '../components/time.tsx';
import { ask } from '../state/session.ts';
import { fieldError, generalError } from '../state/words.ts';
import { Expiry, OwnerTag } from './api-key-table.tsx';

type WhichKeyProps = {
  isListed: (id: string) => boolean;
  onFound: (key: ApiKeyView) => void;
  onRevoke: (key: ApiKeyView) => void;
  onClose: () => void;
};

type Answer = { apiKey: ApiKeyView | null };

/** Tells which key a value is. The value is hashed in the main process, and goes nowhere else. */
export function WhichKey({ isListed, onFound, onRevoke, onClose }: WhichKeyProps) {
  const input = useRef<HTMLInputElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    const field = input.current;
    if (!field) return;
    setAnswer(null);
    const result = await ask(window.callkey.identifyApiKey(field.value));
    setFailure(result.ok ? null : result.failure);
    if (!result.ok) return focusFirstInvalid(form.current);
    field.value = '';
    if (result.value && isListed(result.value.id)) onFound(result.value);
    else setAnswer({ apiKey: result.value });
  }

  return (
    <Dialog title="Which key is this?" onDismiss={onClose}>
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Key value"
          error={fieldError(failure, 'keyValue')}
          hint="Paste a key value that you came across. It stays on this computer: only its hash is looked up."
        >
          {(binding) => <input {...binding} ref={input} type="password" autocomplete="off" spellcheck={false} autofocus />}
        </Field>
        <FormError text={generalError(failure, ['keyValue'])} />
        <div role="status">{answer && <Found apiKey={answer.apiKey} onRevoke={onRevoke} />}</div>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="primary">
            Find Key
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Found({ apiKey, onRevoke }: { apiKey: ApiKeyView | null; onRevoke: (key: ApiKeyView) => void }) {
  if (!apiKey) return <p class="notice">This is no key that you can see: it is revoked, or somebody else’s, or of another core.</p>;
  return (
    <div class="notice">
      <p>
        This is <strong>{apiKey.name}</strong>, an older key that is not listed. {apiKey.owner && <OwnerTag owner={apiKey.owner} />}
      </p>
      <p>
        Last used: {apiKey.lastUsedAt === null ? 'Never' : <Time at={apiKey.lastUsedAt} />} · <Expiry apiKey={apiKey} />
      </p>
      <button type="button" onClick={() => onRevoke(apiKey)}>
        Revoke …
      </button>
    </div>
  );
}
