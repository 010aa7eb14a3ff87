import { app, Menu, type MenuItemConstructorOptions } from 'electron';
import { type Command, commands } from '../ipc.ts';
import { type ScreenName, screens, shortcutAt, showCommand } from '../screens.ts';
import { links, openLink } from './security.ts';
import type { SettingsFile } from './settings.ts';

type Item = MenuItemConstructorOptions;
const separator: Item = { type: 'separator' };
const hiddenRefresh = 'refresh-f5';
const isMac = process.platform === 'darwin';

type MenuDeps = { send: (command: Command) => void; settings: SettingsFile; copyDiagnostics: () => void };
let deps: MenuDeps | undefined;
/** The screens that the View menu shows. It hides screens that the user can't open, so that the shortcuts have no gaps. */
let listed: readonly { name: ScreenName }[] = screens;

/** Installs the app's menu in the order that each platform's guidelines recommend. */
export function installMenu(menuDeps: MenuDeps): void {
  deps = menuDeps;
  const { send, settings, copyDiagnostics } = menuDeps;
  const command = (label: string, name: Command, accelerator?: string): Item => ({
    id: name,
    label,
    click: () => send(name),
    ...(accelerator === undefined ? {} : { accelerator }),
  });
  Menu.setApplicationMenu(
    Menu.buildFromTemplate([
      ...(isMac ? [{ role: 'appMenu' } satisfies Item] : []),
      fileMenu(command),
      isMac ? { role: 'editMenu' } : { label: '&Edit', submenu: editItems },
      viewMenu(command),
      isMac ? { role: 'windowMenu' } : { label: '&Window', submenu: [labeled('minimize', 'Mi&nimize'), labeled('close', '&Close')] },
      helpMenu(command, settings, copyDiagnostics),
    ]),
  );
}

/** Electron's own labels have no letters for Alt. macOS doesn't have such letters, and translates Electron's labels. */
function labeled(role: NonNullable<Item['role']>, label: string): Item {
  return isMac ? { role } : { role, label };
}

const editItems: Item[] = [
  labeled('undo', '&Undo'),
  labeled('redo', '&Redo'),
  separator,
  labeled('cut', 'Cu&t'),
  labeled('copy', '&Copy'),
  labeled('paste', '&Paste'),
  labeled('delete', '&Delete'),
  separator,
  labeled('selectAll', 'Select &All'),
];

/** Disables all other commands, so that the menu offers only what works. */
export function enableCommands(offered: readonly Command[]): void {
  const shown = screens.filter(({ name }) => offered.includes(showCommand(name)));
  // While a dialog is open, no screen is offered, but the menu keeps its items.
  if (deps && shown.length > 0 && shown.length !== listed.length) {
    listed = shown;
    installMenu(deps);
  }
  const menu = Menu.getApplicationMenu();
  for (const name of commands) {
    for (const id of name === 'refresh' ? [name, hiddenRefresh] : [name]) {
      const item = menu?.getMenuItemById(id);
      if (item) item.enabled = offered.includes(name);
    }
  }
}

type CommandItem = (label: string, name: Command, accelerator?: string) => Item;

function fileMenu(command: CommandItem): Item {
  return {
    ...labeled('fileMenu', '&File'),
    submenu: [
      command('&New API Key…', 'new-api-key', 'CmdOrCtrl+N'),
      command('&Which Key Is This?', 'which-key'),
      separator,
      command('Switch Ser&ver…', 'switch-server'),
      command('Change &Password…', 'change-password'),
      command('Sign &Out', 'sign-out'),
      separator,
      labeled('close', '&Close Window'),
      ...(isMac ? [] : [labeled('quit', process.platform === 'win32' ? 'E&xit' : '&Quit')]),
    ],
  };
}

function viewMenu(command: CommandItem): Item {
  return {
    ...labeled('viewMenu', '&View'),
    submenu: [
      ...screens.map(({ menuLabel, name }) => {
        const index = listed.findIndex((each) => each.name === name);
        const item = command(menuLabel, showCommand(name), index < 0 ? undefined : shortcutAt(index));
        return { ...item, visible: index >= 0 };
      }),
      separator,
      command('&Go To…', 'palette', 'CmdOrCtrl+K'),
      command('&Find', 'find', 'CmdOrCtrl+F'),
      command('&Refresh', 'refresh', 'CmdOrCtrl+R'),
      // On Windows and Linux, F5 refreshes, too. This is a separate item, because an item can have only one accelerator.
      { ...command('Refresh', 'refresh', 'F5'), id: hiddenRefresh, visible: false },
      command('&Switch Account or Partner…', 'switch-tenancy', 'CmdOrCtrl+Shift+K'),
      separator,
      labeled('resetZoom', 'Actual Si&ze'),
      labeled('zoomIn', 'Zoom &In'),
      // On many keyboards, plus is typed with Shift and this key.
      { role: 'zoomIn', accelerator: 'CmdOrCtrl+=', visible: false },
      labeled('zoomOut', 'Zoom &Out'),
      separator,
      labeled('togglefullscreen', 'Full Scr&een'),
      ...(app.isPackaged ? [] : [separator, labeled('toggleDevTools', 'Developer Too&ls')]),
    ],
  };
}

function helpMenu(command: CommandItem, settings: SettingsFile, copyDiagnostics: () => void): Item {
  return {
    ...labeled('help', '&Help'),
    submenu: [
      command('Keyboard &Shortcuts', 'help'),
      {
        label: '&Notify Me Before Keys Expire',
        type: 'checkbox',
        checked: settings.current.notifiesExpiry,
        click: ({ checked }) => void settings.change({ notifiesExpiry: checked }),
      },
      { label: 'Copy &Diagnostics', click: copyDiagnostics },
      { label: 'Time &Zones', click: () => openLink(links.timeZones) },
      { label: '&Keeping Secrets Safe', click: () => openLink(links.keepingSecrets) },
      // On macOS, the app menu contains this item.
      ...(isMac ? [] : [separator, labeled('about', `&About ${app.name}`)]),
    ],
  };
}

/** Shows the applicable editing commands on right-click. Electron has no default context menu. */
export function showEditMenu({ editFlags, isEditable, selectionText }: Electron.ContextMenuParams): void {
  const { canCut, canCopy, canPaste, canSelectAll } = editFlags;
  const copy: Item = { ...labeled('copy', '&Copy'), enabled: canCopy };
  if (!isEditable && selectionText === '') return;
  const items: Item[] = isEditable
    ? [
        { ...labeled('cut', 'Cu&t'), enabled: canCut },
        copy,
        { ...labeled('paste', '&Paste'), enabled: canPaste },
        separator,
        { ...labeled('selectAll', 'Select &All'), enabled: canSelectAll },
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
