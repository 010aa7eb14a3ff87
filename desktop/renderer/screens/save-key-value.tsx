import type { ApiKeyView, CreatedApiKeyView } from '#contract/console.ts';
import { OneTimeSecret, SecretDialog } from '../components/secret.tsx';
import { endOf } from '../components/time.tsx';
import { formatInstant } from '../state/format-time.ts';

/** A new key with its value. */
export type ShownKey = { apiKey: ApiKeyView; secret: OneTimeSecret };

export function shownKey({ apiKey, keyValue }: CreatedApiKeyView): ShownKey {
  return { apiKey, secret: new OneTimeSecret(keyValue) };
}

export function SaveKeyValue({ shown, onClose }: { shown: ShownKey; onClose: (unsaved: boolean) => void }) {
  const { apiKey, secret } = shown;
  const end = apiKey.expiresAt === null ? null : endOf(apiKey.expiresAt, apiKey.expiryTimeZone);
  return (
    <SecretDialog
      title="Save your key"
      lead={
        <>
          The console shows the value of <strong>{apiKey.name}</strong> only now. Store it where your integration keeps its secrets.
        </>
      }
      label="Key value"
      secret={secret}
      lost="Nobody can show this key value again. If you lose it, revoke the key and create another."
      onClose={onClose}
    >
      <p class="hint">{end === null ? 'It works until it is revoked.' : `It works until ${formatInstant(end)}.`}</p>
    </SecretDialog>
  );
}
