import { shell } from 'electron';

/** All that the console ever opens in the browser. */
export const links = {
  timeZones: 'https://www.iana.org/time-zones',
  keepingSecrets: 'https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html',
} as const;

const allowed: ReadonlySet<string> = new Set(Object.values(links));

/** Opens a link of the list in the browser. Any other is passed over: what an address may do on this machine is not ours to guess. */
export function openLink(url: string): void {
  if (allowed.has(url)) void shell.openExternal(url).catch(() => undefined);
}
