import { shell } from 'electron';

/** The only addresses that the console opens in the browser. */
export const links = {
  timeZones: 'https://www.iana.org/time-zones',
  keepingSecrets: 'https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html',
} as const;

const allowed: ReadonlySet<string> = new Set(Object.values(links));

/** Opens a listed link in the browser and ignores any other, because an arbitrary URL can start other programs on the machine. */
export function openLink(url: string): void {
  if (allowed.has(url)) void shell.openExternal(url).catch(() => undefined);
}
