import type { UserType } from '#contract/console/common.ts';
import type { SessionView } from '#contract/console/session.ts';

type ScreenDeclaration = {
  /** Its menu command is `show-` plus this name. */
  name: string;
  /** In the navigation, and as the heading of the screen. */
  label: string;
  /** In the View menu; `&` marks the letter that selects it on Windows and Linux. */
  menuLabel: string;
  /** The name of an icon in components/icons.tsx. */
  icon: string;
  /** Who can open the screen. For others, it's only hidden; it's the core that refuses requests. */
  userTypes: readonly UserType[];
  /** Hidden from partner users who are limited to one account. */
  needsWholePartner?: true;
  /** Service staff must select an account or a partner before the screen has anything to show. */
  needsTenancy: boolean;
};

const everyone: readonly UserType[] = ['account', 'partner', 'staff'];

/** Every screen in the order of the navigation, the home screen first. Components are in renderer/screens/shell/shell.tsx. */
export const screens = [
  {
    name: 'api-keys',
    label: 'API keys',
    menuLabel: '&API Keys',
    icon: 'key',
    userTypes: everyone,
    needsTenancy: true,
  },
  { name: 'calls', label: 'Calls', menuLabel: '&Calls', icon: 'phone', userTypes: everyone, needsTenancy: true },
  {
    name: 'users',
    label: 'Users',
    menuLabel: '&Users',
    icon: 'people',
    userTypes: ['partner', 'staff'],
    needsTenancy: false,
  },
  {
    name: 'activity',
    label: 'Activity',
    menuLabel: 'Ac&tivity',
    icon: 'activity',
    userTypes: everyone,
    needsTenancy: false,
  },
  {
    name: 'protection',
    label: 'Protection',
    menuLabel: '&Protection',
    icon: 'shield',
    userTypes: everyone,
    needsTenancy: true,
  },
  {
    name: 'directory',
    label: 'Directory',
    menuLabel: '&Directory',
    icon: 'folder',
    userTypes: ['partner', 'staff'],
    needsWholePartner: true,
    needsTenancy: false,
  },
] as const satisfies readonly ScreenDeclaration[];

type Screen = (typeof screens)[number];
export type ScreenName = Screen['name'];
export type ShowCommand = `show-${ScreenName}`;

/** Returns a screen's shortcut in Electron's notation, from its position among the screens that the user can see. */
export function shortcutAt(index: number): string {
  return `CmdOrCtrl+${index + 1}`;
}

export function showCommand<Name extends ScreenName>(name: Name): `show-${Name}` {
  return `show-${name}`;
}

export function isShowCommand(command: string): command is ShowCommand {
  return screens.some(({ name }) => showCommand(name) === command);
}

export function screensFor({ userType, account }: Pick<SessionView['viewer'], 'userType' | 'account'>): readonly Screen[] {
  return screens.filter(
    ({ userTypes, needsWholePartner }: ScreenDeclaration) => userTypes.includes(userType) && !(needsWholePartner && account !== null),
  );
}
