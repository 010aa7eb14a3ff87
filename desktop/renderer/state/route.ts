import { signal } from '@preact/signals';
import type { SessionView } from '#contract/console.ts';

export const screens = ['api-keys', 'calls', 'people', 'activity'] as const;
export type Screen = (typeof screens)[number];

export const screenWords: Readonly<Record<Screen, string>> = {
  'api-keys': 'API keys',
  calls: 'Calls',
  people: 'People',
  activity: 'Activity',
};

export const screen = signal<Screen>('api-keys');

/** What opens over a screen, from the menu as well as from the screen itself. */
export type Opening = 'create-key' | 'which-key' | 'switch-tenancy' | 'change-password';
export const opened = signal<Opening | null>(null);

/** The screens that a user has: account users do not manage people. */
export function screensOf({ viewer }: SessionView): readonly Screen[] {
  return screens.filter((name) => name !== 'people' || viewer.userType !== 'account');
}
