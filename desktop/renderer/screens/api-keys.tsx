import { useState } from 'preact/hooks';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console.ts';
import { Icon } from '../components/icons.tsx';
import { Loadable, useResource } from '../components/loadable.tsx';
import { announce } from '../state/announcement.ts';
import { openDialog, type ScreenProps } from '../state/navigation.ts';
import { ApiKeyList, type Highlight } from './api-key-list.tsx';
import { focusRow } from './api-key-table.tsx';
import { CreateApiKey } from './create-api-key.tsx';
import { RevokeApiKey } from './revoke-api-key.tsx';
import { SaveKeyValue, type ShownKey, shownKey } from './save-key-value.tsx';
import { WhichKey } from './which-key.tsx';

/** The keys of the viewer's scope, and the dialogs about them. */
export function ApiKeys({ session, title }: ScreenProps) {
  const resource = useResource(() => window.callkey.listApiKeys());
  const [revoking, setRevoking] = useState<ApiKeyView | null>(null);
  const [highlighted, setHighlighted] = useState<Highlight | null>(null);
  const [saving, setSaving] = useState<ShownKey | null>(null);
  const close = () => {
    openDialog.value = null;
  };

  function created(view: CreatedApiKeyView): void {
    close();
    setSaving(shownKey(view));
    void resource.refresh();
  }
  function shown(key: ApiKeyView, unsaved: boolean): void {
    setSaving(null);
    setHighlighted({ id: key.id });
    announce(unsaved ? `${key.name} exists, but nobody has its value. Revoke it.` : `${key.name} is ready for use.`);
  }
  function revoked(key: ApiKeyView, nextId: string | null): void {
    setRevoking((now) => (now?.id === key.id ? null : now));
    announce(`${key.name} is revoked. The core refuses it from now on.`);
    void resource.refresh().then(() => focusRow(nextId));
  }

  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        <button type="button" onClick={() => open('which-key')}>
          Which key is this?
        </button>
        <button type="button" class="primary" onClick={() => open('create-key')}>
          <Icon name="plus" /> Create API Key
        </button>
      </div>
      <Loadable resource={resource} what="your API keys">
        {(view) => <ApiKeyList view={view} highlighted={highlighted} onRevoke={setRevoking} />}
      </Loadable>
      {openDialog.value === 'create-key' && (
        <CreateApiKey session={session} onCreated={created} onUncertain={() => void resource.refresh()} onClose={close} />
      )}
      {openDialog.value === 'which-key' && (
        <WhichKey
          onFound={(key) => {
            close();
            setHighlighted({ id: key.id });
          }}
          onRevoke={(key) => {
            close();
            setRevoking(key);
          }}
          isListed={(id) => resource.state.peek().value?.apiKeys.some((key) => key.id === id) === true}
          onClose={close}
        />
      )}
      {saving && <SaveKeyValue shown={saving} onClose={(unsaved) => shown(saving.apiKey, unsaved)} />}
      {revoking && (
        <RevokeApiKey
          apiKey={revoking}
          onRevoked={(nextId) => revoked(revoking, nextId)}
          onClose={() => setRevoking(null)}
          onGone={() => {
            setRevoking(null);
            void resource.refresh();
          }}
        />
      )}
    </>
  );
}

function open(what: 'create-key' | 'which-key'): void {
  openDialog.value = what;
}
