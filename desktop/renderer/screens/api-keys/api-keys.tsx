import { useCallback, useMemo, useState } from 'preact/hooks';
import type { ApiKeyView, RevokedApiKeysView } from '#contract/console/api-keys.ts';
import { Icon } from '../../components/icons.tsx';
import { Loadable, useFreshResource } from '../../components/loadable.tsx';
import { Page } from '../../components/page.tsx';
import { ExportButton } from '../../components/table/export-button.tsx';
import { adjacentRowId, focusRow } from '../../components/table/table-focus.ts';
import { useView } from '../../components/use-view.ts';
import { announce, warn } from '../../state/announcement.ts';
import { now } from '../../state/clock.ts';
import { pluralize } from '../../state/format/format.ts';
import { openDialog, requestedKey, type ScreenProps } from '../../state/navigation.ts';
import { ApiKeyDetails, OpenApiKey } from './api-key-details.tsx';
import { CreateApiKey } from './dialogs/create-api-key.tsx';
import { RevokeApiKey } from './dialogs/revoke-api-key.tsx';
import { RevokeApiKeys } from './dialogs/revoke-api-keys.tsx';
import { type NewApiKey, SaveKeyValue, type ShownKey, shownKey } from './dialogs/save-key-value.tsx';
import { FirstKey } from './first-key.tsx';
import { summarizeLimits } from './key-limits.ts';
import { ApiKeyHead, ApiKeyList } from './list/api-key-list.tsx';
import { filterKeys, hasExpired, keyCsvHead, keyCsvRow, keysWithSameName } from './list/key-list.ts';
import { type KeyListView, keyListView, keysInView } from './list/key-list-view.ts';
import { KeyPager } from './list/key-pager.tsx';
import { SelectionBar } from './list/selection-bar.tsx';
import { WhichKey } from './which-key.tsx';

/** Shows the keys in the viewer's scope, and the dialogs about them. */
export function ApiKeys({ session, title }: ScreenProps) {
  const resource = useFreshResource('api-keys', () => window.callkey.request('listApiKeys', {}));
  const [settings, change] = useView(keyListView.name, keyListView.initial);
  const [revoking, setRevoking] = useState<ApiKeyView | null>(null);
  const [saving, setSaving] = useState<ShownKey | null>(null);
  const [replaced, setReplaced] = useState<ApiKeyView | null>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isRevokingSelected, setRevokingSelected] = useState(false);
  const close = () => {
    openDialog.value = null;
    setReplaced(null);
  };
  const listed = resource.state.value.value;
  const matches = useMemo(() => keysInView(listed?.apiKeys ?? [], settings, now.value), [listed, settings, now.value]);
  const openId = settings.open;
  const setOpenId = (id: string) => change({ open: id });
  const openKey = listed?.apiKeys.find(({ id }) => id === openId);
  const closeDetails = useCallback(() => {
    setOpenId('');
    focusRow(openId);
  }, [openId]);

  function created(view: NewApiKey): void {
    openDialog.value = null;
    setSaving(shownKey(view));
    void resource.refresh();
  }
  function shown(key: ApiKeyView, unsaved: boolean): void {
    setSaving(null);
    // Shows the old key's details again, which now include both keys.
    if (replaced) setOpenId(replaced.id);
    else requestedKey.value = { id: key.id };
    setReplaced(null);
    if (unsaved) warn(`${key.name} was created, but its value wasn’t saved. Revoke it.`);
    else announce(`${key.name} is ready to use.`);
  }
  function revoked(key: ApiKeyView): void {
    const nextId = adjacentRowId(key.id);
    setRevoking((now) => (now?.id === key.id ? null : now));
    setOpenId('');
    announce(hasExpired(key, now.peek()) ? `${key.name} was revoked.` : `${key.name} was revoked and no longer works.`);
    void resource.refresh().then(() => focusRow(nextId));
  }

  function revokedSelected({ revoked, gone }: RevokedApiKeysView): void {
    setRevokingSelected(false);
    setSelected(new Set());
    setOpenId('');
    const others = gone.length === 0 ? '' : ` ${pluralize(gone.length, 'other was', 'others were')} already gone.`;
    announce(`${pluralize(revoked.length, 'key was', 'keys were')} revoked.${others}`);
    void resource.refresh().then(() => focusRow(null));
  }

  // Includes only keys that are still shown: another administrator may have revoked some, and others may no longer match the filter.
  const selectedKeys = matches.filter(({ id }) => selected.has(id));
  /** Changes the filters, and deselects and closes the keys that they hide. Otherwise, those keys could be revoked by mistake. */
  function narrow(changes: Partial<KeyListView>): void {
    const { search, filter, owner } = { ...settings, ...changes };
    const visible = new Set(filterKeys(listed?.apiKeys ?? [], search, filter, now.peek(), owner).map(({ id }) => id));
    change(openKey && !visible.has(openId) ? { ...changes, open: '' } : changes);
    setSelected(new Set([...selected].filter((id) => visible.has(id))));
  }
  const isEmpty = listed?.total === 0;
  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {listed && !isEmpty && (
              <ExportButton name="api-keys" head={keyCsvHead} rows={() => matches.map((key) => keyCsvRow(key, now.peek()))} />
            )}
            <button type="button" onClick={() => open('which-key')}>
              Which key is this?
            </button>
            <button type="button" class="primary" onClick={() => open('create-key')}>
              <Icon name="plus" /> Create API key
            </button>
          </>
        }
        head={listed && !isEmpty && <ApiKeyHead view={listed} settings={settings} onChange={narrow} />}
        details={
          listed &&
          openId !== '' && (
            <OpenApiKey key={openId} id={openId} listed={openKey} onClose={closeDetails}>
              {(apiKey) => (
                <ApiKeyDetails
                  apiKey={apiKey}
                  sameNamed={keysWithSameName(listed.apiKeys, apiKey)}
                  onReplace={() => {
                    setReplaced(apiKey);
                    open('create-key');
                  }}
                  onLimited={({ name, ...limits }) => {
                    const summary = summarizeLimits(limits);
                    announce(summary === '' ? `${name} no longer has limits.` : `${name} is now limited: ${summary}.`);
                    void resource.refresh();
                  }}
                  onRevoke={() => setRevoking(apiKey)}
                  onClose={closeDetails}
                />
              )}
            </OpenApiKey>
          )
        }
        resource={resource}
        foot={
          listed &&
          !isEmpty && (
            <>
              <KeyPager matches={matches} settings={settings} onChange={change} />
              {selectedKeys.length > 0 && (
                <SelectionBar
                  count={selectedKeys.length}
                  onRevoke={() => {
                    const [first, ...others] = selectedKeys;
                    if (first && others.length === 0) setRevoking(first);
                    else setRevokingSelected(true);
                  }}
                  onClear={() => setSelected(new Set())}
                />
              )}
            </>
          )
        }
      >
        <Loadable resource={resource} noun="your API keys" isInPage>
          {(view) =>
            view.total === 0 ? (
              <FirstKey onCreate={() => open('create-key')} />
            ) : (
              <ApiKeyList
                view={view}
                matches={matches}
                settings={settings}
                onChange={narrow}
                highlighted={requestedKey.value}
                openId={openId}
                selection={{ ids: selected, onChange: setSelected }}
                onOpen={({ id }) => setOpenId(id)}
                onRevoke={setRevoking}
              />
            )
          }
        </Loadable>
      </Page>
      {openDialog.value === 'create-key' && (
        <CreateApiKey
          session={session}
          listed={listed?.apiKeys ?? []}
          replaced={replaced}
          onCreated={created}
          onMaybeCreated={() => void resource.refresh()}
          onClose={close}
        />
      )}
      {openDialog.value === 'which-key' && (
        <WhichKey
          onFound={({ id }) => {
            close();
            requestedKey.value = { id };
            setOpenId(id);
          }}
          onClose={close}
        />
      )}
      {saving && <SaveKeyValue session={session} shown={saving} onClose={(unsaved) => shown(saving.apiKey, unsaved)} />}
      {isRevokingSelected && (
        <RevokeApiKeys apiKeys={selectedKeys} onRevoked={revokedSelected} onClose={() => setRevokingSelected(false)} />
      )}
      {revoking && (
        <RevokeApiKey
          apiKey={revoking}
          replacement={newestAfter(keysWithSameName(listed?.apiKeys ?? [], revoking), revoking)}
          onReplace={() => {
            setRevoking(null);
            setReplaced(revoking);
            open('create-key');
          }}
          onRevoked={() => revoked(revoking)}
          onClose={() => setRevoking(null)}
          onAlreadyRevoked={() => {
            setRevoking(null);
            void resource.refresh();
          }}
        />
      )}
    </>
  );
}

/** Returns the newest key that was created after another one. */
function newestAfter(keys: readonly ApiKeyView[], older: ApiKeyView): ApiKeyView | null {
  const newer = keys.filter(({ createdAt }) => Date.parse(createdAt) > Date.parse(older.createdAt));
  return newer.toSorted((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))[0] ?? null;
}

function open(what: 'create-key' | 'which-key'): void {
  openDialog.value = what;
}
