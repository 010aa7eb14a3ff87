import { DateTime } from 'luxon';
import { useEffect, useState } from 'preact/hooks';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console.ts';
import { Once, SecretDialog } from '../components/secret.tsx';
import { exactText, ownZone } from '../state/times.ts';

/** A key that was just created, with the value that shows this once. */
export type ShownKey = { apiKey: ApiKeyView; secret: Once };

export function shownKey({ apiKey, keyValue }: CreatedApiKeyView): ShownKey {
  return { apiKey, secret: new Once(keyValue) };
}

export function SaveKeyValue({ shown, onClose }: { shown: ShownKey; onClose: () => void }) {
  const { apiKey, secret } = shown;
  const [closeRequests, setCloseRequests] = useState(0);
  // The window's own close button asks first, too: and then closes the window.
  useEffect(
    () =>
      window.callkey.onCommand((command) => {
        if (command === 'close') setCloseRequests((count) => count + 1);
      }),
    [],
  );

  async function close(unsaved: boolean): Promise<void> {
    secret.drop();
    onClose();
    await window.callkey.keyValueIsGone();
    if (unsaved && closeRequests > 0) await window.callkey.closeWindow();
  }

  const end = apiKey.expiresAt === null ? null : DateTime.fromISO(apiKey.expiresAt, { zone: apiKey.expiryTimeZone ?? ownZone });
  return (
    <SecretDialog
      title="Save your key"
      label="Key value"
      secret={secret}
      closeRequests={closeRequests}
      lost="Nobody can show this key value again. A key that is lost has to be revoked."
      onClose={(unsaved) => void close(unsaved)}
    >
      <p>
        This is the only time that the value of <strong>{apiKey.name}</strong> is shown. Put it where your integration keeps its secrets.
      </p>
      <p class="hint">{end === null ? 'It works until it is revoked.' : `It works until ${exactText(end)}.`}</p>
    </SecretDialog>
  );
}
