import { useMemo, useState } from 'preact/hooks';
import type { SessionView } from '#contract/console.ts';
import { folded } from '#contract/text/text.ts';
import type { Command } from '../../../ipc.ts';
import { screensFor, showCommand } from '../../../screens.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { type Option, Picker } from '../../components/forms/picker.tsx';
import { useFreshResource } from '../../components/loadable.tsx';
import { canUseKeys } from '../../state/commands.ts';
import { showKey } from '../../state/navigation.ts';
import { reloadKeys } from '../../state/older-keys.ts';

type PaletteProps = { session: SessionView; onCommand: (command: Command) => void; onClose: () => void };

const keyPrefix = 'key:';
const shownKeys = 20;

/** Opens any screen, finds a key by its name, and runs commands, using only the keyboard. */
export function Palette({ session, onCommand, onClose }: PaletteProps) {
  const [search, setSearch] = useState('');
  const resource = useFreshResource('api-keys', reloadKeys);
  const keys = resource.state.value.value?.apiKeys;
  const options = useMemo(() => {
    const query = folded(search.trim());
    const matches = ({ name }: { name: string }) => folded(name).includes(query);
    const matchingKeys = query === '' ? [] : (keys ?? []).filter(matches).slice(0, shownKeys);
    const keyOptions = matchingKeys.map(({ id, name, owner }) => ({
      id: `${keyPrefix}${id}`,
      name,
      caption: owner ? `API key · ${owner.name}` : 'API key',
    }));
    return [...commandOptions(session).filter(matches), ...keyOptions];
  }, [search, keys, session]);

  function choose({ id }: Option): void {
    onClose();
    if (id.startsWith(keyPrefix)) showKey(id.slice(keyPrefix.length));
    else onCommand(id as Command);
  }

  return (
    <Dialog title="Go to" onDismiss={onClose}>
      <Picker
        label="Search for a screen, command, or key"
        listLabel="Screens, commands and keys"
        placeholder="Search for a screen, command, or key"
        search={search}
        onSearch={setSearch}
        options={options}
        onChoose={choose}
      />
      {options.length === 0 && <p class="hint">Nothing matches “{search.trim()}”.</p>}
    </Dialog>
  );
}

function commandOptions(session: SessionView): Option[] {
  const { userType } = session.viewer;
  const screens = screensFor(session.viewer).map(({ name, label }): [Command, string, string] => [showCommand(name), label, 'Screen']);
  const commands: [Command, string, string][] = [
    ...(canUseKeys(session)
      ? ([
          ['new-api-key', 'Create API key', ''],
          ['which-key', 'Which key is this?', ''],
        ] as const)
      : []),
    ...(userType === 'staff' ? ([['switch-tenancy', 'Switch account or partner', '']] as const) : []),
    ...(window.callkey.capabilities.choosesServer ? ([['switch-server', 'Switch server', '']] as const) : []),
    ['change-password', 'Change password', ''],
    ['sign-out', 'Sign out', ''],
  ].map(([id, name, caption]) => [id, name, caption] as [Command, string, string]);
  return [...screens, ...commands].map(([id, name, caption]) => ({ id, name, caption }));
}
