import { app, Menu, type MenuItemConstructorOptions } from 'electron';
import { type Command, commands } from '../ipc.ts';
import { screens, showCommand } from '../screens.ts';
import { links, openLink } from './links.ts';

type Item = MenuItemConstructorOptions;
const separator: Item = { type: 'separator' };
const hiddenRefresh = 'refresh-f5';

/**
 * Installs the app's menu in the order that each platform's guidelines recommend.
 *
 * @param send sends a command to the page
 */
export function installMenu(send: (command: Command) => void): void {
  const isMac = process.platform === 'darwin';
  const command = (label: string, name: Command, accelerator?: string): Item => ({
    id: name,
    label,
    click: () => send(name),
    ...(accelerator === undefined ? {} : { accelerator }),
  });
  Menu.setApplicationMenu(
    Menu.buildFromTemplate([
      ...(isMac ? [{ role: 'appMenu' } satisfies Item] : []),
      fileMenu(command, isMac),
      { role: 'editMenu' },
      viewMenu(command),
      { role: 'windowMenu' },
      helpMenu(command, isMac),
    ]),
  );
}

/** Disables all other commands, so that the menu offers only what works. */
export function enableCommands(offered: readonly Command[]): void {
  const menu = Menu.getApplicationMenu();
  for (const name of commands) {
    for (const id of name === 'refresh' ? [name, hiddenRefresh] : [name]) {
      const item = menu?.getMenuItemById(id);
      if (item) item.enabled = offered.includes(name);
    }
  }
}

type CommandItem = (label: string, name: Command, accelerator?: string) => Item;

function fileMenu(command: CommandItem, isMac: boolean): Item {
  return {
    role: 'fileMenu',
    submenu: [
      command('&New API Key…', 'new-api-key', 'CmdOrCtrl+N'),
      command('&Which Key Is This?', 'which-key'),
      separator,
      command('Switch Ser&ver…', 'switch-server'),
      command('Change &Password…', 'change-password'),
      command('Sign &Out', 'sign-out'),
      separator,
      { role: 'close' },
      ...(isMac ? [] : [{ role: 'quit' } satisfies Item]),
    ],
  };
}

function viewMenu(command: CommandItem): Item {
  return {
    role: 'viewMenu',
    submenu: [
      ...screens.map(({ menuLabel, name, shortcut }) => command(menuLabel, showCommand(name), shortcut)),
      separator,
      command('&Go To…', 'palette', 'CmdOrCtrl+K'),
      command('&Find', 'find', 'CmdOrCtrl+F'),
      command('&Refresh', 'refresh', 'CmdOrCtrl+R'),
      // On Windows and Linux, F5 refreshes, too. This is a separate item, because an item can have only one accelerator.
      { ...command('Refresh', 'refresh', 'F5'), id: hiddenRefresh, visible: false },
      command('&Switch Account or Partner…', 'switch-tenancy', 'CmdOrCtrl+Shift+K'),
      separator,
      { role: 'resetZoom' },
      { role: 'zoomIn' },
      // On many keyboards, plus is typed with Shift and this key.
      { role: 'zoomIn', accelerator: 'CmdOrCtrl+=', visible: false },
      { role: 'zoomOut' },
      separator,
      { role: 'togglefullscreen' },
      ...(app.isPackaged ? [] : [separator, { role: 'toggleDevTools' } satisfies Item]),
    ],
  };
}

function helpMenu(command: CommandItem, isMac: boolean): Item {
  return {
    role: 'help',
    submenu: [
      command('Keyboard &Shortcuts', 'help'),
      { label: 'About &Time Zones', click: () => openLink(links.timeZones) },
      { label: '&Keeping Secrets Safe', click: () => openLink(links.keepingSecrets) },
      // On macOS, the app menu contains this item.
      ...(isMac ? [] : [separator, { role: 'about' } satisfies Item]),
    ],
  };
}

/** Shows the applicable editing commands on right-click. Electron has no default context menu. */
export function showEditMenu({ editFlags, isEditable, selectionText }: Electron.ContextMenuParams): void {
  const { canCut, canCopy, canPaste, canSelectAll } = editFlags;
  const copy: Item = { role: 'copy', enabled: canCopy };
  if (!isEditable && selectionText === '') return;
  const items: Item[] = isEditable
    ? [
        { role: 'cut', enabled: canCut },
        copy,
        { role: 'paste', enabled: canPaste },
        separator,
        { role: 'selectAll', enabled: canSelectAll },
      ]
    : [copy];
  Menu.buildFromTemplate(items).popup();
}

export function setAboutPanel(): void {
  app.setAboutPanelOptions({
    applicationName: app.name,
    applicationVersion: app.getVersion(),
    version: `Electron ${process.versions.electron}, Chromium ${process.versions.chrome}`,
    copyright: 'MIT License',
  });
}
