import { DateTime } from 'luxon';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console.ts';
import { Once, SecretDialog } from '../components/secret.tsx';
import { exactText, ownZone } from '../state/times.ts';

/** A key that was just created, with the value that shows this once. */
export type ShownKey = { apiKey: ApiKeyView; secret: Once };

export function shownKey({ apiKey, keyValue }: CreatedApiKeyView): ShownKey {
  return { apiKey, secret: new Once(keyValue) };
}

export function SaveKeyValue({ shown, onClose }: { shown: ShownKey; onClose: (unsaved: boolean) => void }) {
  const { apiKey, secret } = shown;
  const end = apiKey.expiresAt === null ? null : DateTime.fromISO(apiKey.expiresAt, { zone: apiKey.expiryTimeZone ?? ownZone });
  return (
    <SecretDialog
      title="Save your key"
      lead={
        <>
          This is the only time that the value of <strong>{apiKey.name}</strong> is shown. Put it where your integration keeps its secrets.
        </>
      }
      label="Key value"
      secret={secret}
      lost="Nobody can show this key value again. A key that is lost has to be revoked."
      onClose={onClose}
    >
      <p class="hint">{end === null ? 'It works until it is revoked.' : `It works until ${exactText(end)}.`}</p>
    </SecretDialog>
  );
}
