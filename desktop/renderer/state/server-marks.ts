import { computed, effect, signal } from '@preact/signals';
import type { RememberedServer, ServerMark } from '../../ipc.ts';
import { server, session } from './session.ts';
import { serverHost } from './workspace.ts';

/** The servers that the user has signed in to. */
export const knownServers = signal<readonly RememberedServer[]>([]);

export async function loadServers(): Promise<void> {
  knownServers.value = await window.callkey.listServers().catch(() => []);
}

/** The user's own name and color for the current server. */
const currentMark = computed((): ServerMark => knownServers.value.find(({ address }) => address === server.value) ?? {});

/** Returns the user's own name for a server, or its address without the scheme. */
export function serverName(address: string): string {
  return knownServers.value.find((known) => known.address === address)?.label ?? serverHost(address);
}

/** Keeps the color of the current server on the page. The page calls it once. */
export function followServerMark(): void {
  effect(() => {
    if (session.value?.viewer.id !== undefined && server.value !== '') void loadServers();
  });
  effect(() => {
    document.documentElement.dataset['server'] = (session.value && currentMark.value.color) ?? 'none';
  });
}
