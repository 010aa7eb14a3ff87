import { computed, effect, signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { type Command, CommandQueue } from '../../ipc.ts';
import { screensFor, showCommand } from '../../screens.ts';
import { dialogCount } from './navigation.ts';
import { session } from './session.ts';

/** Keeps the menu's commands until a screen handles them, beginning when the page's script starts. */
const queue = new CommandQueue<Command>();
window.callkey.onCommand((command) => queue.push(command));

/** Handles the menu's commands while the component is mounted. A layout effect, so that what's visible is already listening. */
export function useCommands(handle: (command: Command) => void): void {
  useLayoutEffect(() => queue.listen(handle), [handle]);
}

const ignore = () => undefined;

/** Drops the menu's commands. Otherwise, a "Sign Out" on the sign-in screen would end the next session. */
export function useIgnoredCommands(): void {
  useCommands(ignore);
}

/** Whether keys can be seen and created. Staff must select a tenancy first. */
export function canUseKeys({ viewer, tenancy }: SessionView): boolean {
  return viewer.userType !== 'staff' || tenancy !== null;
}

/** Whether the sign-in form offers other servers. */
export const hasOtherServers = signal(false);

/** The commands that a session offers while no dialog is open. */
export function commandsFor(session: SessionView): Command[] {
  return [
    ...screensFor(session.viewer).map(({ name }) => showCommand(name)),
    ...(canUseKeys(session) ? (['new-api-key', 'which-key'] as const) : []),
    ...(session.viewer.userType === 'staff' ? (['switch-tenancy'] as const) : []),
    ...(window.callkey.capabilities.choosesServer ? (['switch-server'] as const) : []),
    'palette',
    'find',
    'refresh',
    'help',
    'change-password',
    'sign-out',
  ];
}

const offeredCommands = computed((): Command[] => {
  const now = session.value;
  if (dialogCount.value > 0) return [];
  if (!now) return hasOtherServers.value ? ['switch-server'] : [];
  return now.passwordChangeDue || now.secondFactorDue ? [] : commandsFor(now);
});

/** Keeps the menu up to date. The page calls it once. */
export function offerCommands(): void {
  effect(() => void window.callkey.offerCommands({ commands: offeredCommands.value }));
}

/**
 * Keeps keys from the page while an input method composes text. Enter then accepts what it suggests, and Escape dismisses it, so neither
 * must also choose an option or close a dialog. The page calls it once, before anything else listens.
 */
export function leaveKeysToInputMethods(): void {
  // In Safari, the key that ends the composition arrives after it. Only its code still says that it belonged to the input method.
  const ofInputMethod = 229;
  const stop = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === ofInputMethod) event.stopImmediatePropagation();
  };
  window.addEventListener('keydown', stop, { capture: true });
}
