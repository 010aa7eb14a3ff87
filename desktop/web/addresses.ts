import { batch, effect } from '@preact/signals';
import { chosenCampaign, screen, showScreen } from '../renderer/state/navigation.ts';
import { session } from '../renderer/state/session.ts';
import { type ScreenName, screens, screensFor } from '../screens.ts';

type Place = { name: ScreenName; campaignId: string };

function toAddress({ name, campaignId }: Place): string {
  return name === 'calls' && campaignId !== '' ? `#/calls/${campaignId}` : `#/${name}`;
}

/** The inverse; null if the address isn't a screen's. */
function placeAt(hash: string): Place | null {
  const [start, screenName, campaignId = '', ...rest] = hash.split('/');
  const match = screens.find(({ name }) => name === screenName);
  if (start !== '#' || !match || rest.length > 0 || (campaignId !== '' && match.name !== 'calls')) return null;
  return { name: match.name, campaignId };
}

const currentPlace = (): Place => ({ name: screen.peek(), campaignId: chosenCampaign.peek() });

/**
 * Gives each screen, and the calls of each campaign, an address such as `/#/calls`, so that a browser's Back and Forward move between them.
 */
export function followAddresses(): void {
  const first = placeAt(location.hash);
  if (first) {
    screen.value = first.name;
    chosenCampaign.value = first.campaignId;
  }
  effect(() => {
    if (!session.value) return;
    const available = screensFor(session.value.viewer).map(({ name }) => name);
    const [home] = screens;
    screen.value = available.includes(screen.value) ? screen.value : home.name;
    const address = toAddress({ name: screen.value, campaignId: chosenCampaign.value });
    if (location.hash === address) return;
    const shown = placeAt(location.hash);
    const isElsewhere = shown !== null && available.includes(shown.name);
    history[isElsewhere ? 'pushState' : 'replaceState'](null, '', address);
  });
  addEventListener('popstate', goToAddress);
}

function goToAddress(): void {
  const dialog = [...document.querySelectorAll('dialog[open]')].at(-1);
  const place = placeAt(location.hash);
  if (dialog) {
    // Going back closes the dialog instead of leaving the screen under it. A dialog with a secret asks first.
    history.pushState(null, '', toAddress(currentPlace()));
    dialog.dispatchEvent(new Event('cancel', { cancelable: true }));
  } else if (place) {
    // In one step: after only one of the two, the effect above would add an address that no one visited.
    batch(() => {
      if (place.name === 'calls') chosenCampaign.value = place.campaignId;
      showScreen(place.name);
    });
  } else history.replaceState(null, '', toAddress(currentPlace()));
}
