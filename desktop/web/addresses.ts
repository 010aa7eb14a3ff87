import { effect } from '@preact/signals';
import { screen, showScreen } from '../renderer/state/navigation.ts';
import { session } from '../renderer/state/session.ts';
import { type ScreenName, screens, screensFor } from '../screens.ts';

const addressOf = (name: ScreenName) => `#/${name}`;
const screenAt = (hash: string) => screens.find(({ name }) => addressOf(name) === hash)?.name;

/** Gives each screen an address, such as `/#/calls`, so that a browser's Back and Forward go through the screens. */
export function followAddresses(): void {
  screen.value = screenAt(location.hash) ?? screen.peek();
  effect(() => {
    if (!session.value) return;
    const available = screensFor(session.value.viewer.userType).map(({ name }) => name);
    const [home] = screens;
    const current = available.includes(screen.value) ? screen.value : home.name;
    screen.value = current;
    const shown = screenAt(location.hash);
    if (shown === current) return;
    const isElsewhere = shown !== undefined && available.includes(shown);
    history[isElsewhere ? 'pushState' : 'replaceState'](null, '', addressOf(current));
  });
  addEventListener('popstate', goToAddress);
}

function goToAddress(): void {
  const dialog = [...document.querySelectorAll('dialog[open]')].at(-1);
  const wanted = screenAt(location.hash);
  if (dialog) {
    // Going back leaves the dialog, not the screen under it; a dialog with a secret asks first.
    history.pushState(null, '', addressOf(screen.peek()));
    dialog.dispatchEvent(new Event('cancel', { cancelable: true }));
  } else if (wanted) showScreen(wanted);
  else history.replaceState(null, '', addressOf(screen.peek()));
}
