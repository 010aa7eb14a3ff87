import { computed, effect, signal } from '@preact/signals';
import type { RememberedServer, ServerMark } from '../../ipc.ts';
import { serverHost } from './labels.ts';
import { server, session, startupState } from './session.ts';

export const knownServers = signal<readonly RememberedServer[]>([]);

export async function loadServers(): Promise<void> {
  knownServers.value = await window.callkey.listServers().catch(() => []);
}

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
    const color = session.value && currentMark.value.color;
    document.documentElement.style.setProperty('--server', color ? `var(--server-${color})` : null);
  });
}

/** Whether the first version is later than the second. Only the three numbers count. */
function isLater(version: string, other: string): boolean {
  const [a, b] = [version, other].map((text) => /^\d+\.\d+\.\d+/.exec(text)?.[0]);
  return a !== undefined && b !== undefined && a.localeCompare(b, 'en', { numeric: true }) > 0;
}

/** Describes the versions of the app and the server. @param core the server's, if it says so */
export function describeVersions(core: string): string {
  const app = startupState.value?.appVersion ?? null;
  return [...(app === null ? [] : [`App ${app}`]), `Server ${core}`].join(' · ');
}

/** Returns what to do if the server is of a later version than the app; null otherwise. */
export function describeUpdate(core: string | undefined): string | null {
  const app = startupState.value?.appVersion ?? null;
  if (app === null || core === undefined || !isLater(core, app)) return null;
  return `Update this app from ${app} to ${core}, your server’s version.`;
}
