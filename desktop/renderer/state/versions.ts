import { startupState } from './session.ts';

/** Whether the first version is later than the second. Only the three numbers count. */
function isLater(version: string, other: string): boolean {
  const read = (text: string) => (/^(\d+)\.(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number);
  const [a, b] = [read(version), read(other)];
  if (a.length === 0 || b.length === 0) return false;
  const index = a.findIndex((number, position) => number !== b[position]);
  return index >= 0 && (a[index] ?? 0) > (b[index] ?? 0);
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
