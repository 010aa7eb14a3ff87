import { useLayoutEffect } from 'preact/hooks';
import { CommandQueue } from '../../command-queue.ts';
import type { Command } from '../../ipc.ts';

/** The menu's commands, from the moment the page's script runs until a screen handles them. */
const queue = new CommandQueue();
window.callkey.onCommand((command) => queue.push(command));

/** Handles the menu's commands while the component is mounted. A layout effect: a component that is visible already listens. */
export function useCommands(handle: (command: Command) => void): void {
  useLayoutEffect(() => queue.listen(handle), [handle]);
}

const ignore = () => undefined;

/** Drops the menu's commands. Otherwise a "Sign Out" on the sign-in screen would end the session that begins next. */
export function useIgnoredCommands(): void {
  useCommands(ignore);
}
