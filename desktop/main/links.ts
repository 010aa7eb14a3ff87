import { shell } from 'electron';
import { referenceUrl } from '../server-address.ts';

/** The only addresses that the console opens in the browser. */
export const links = {
  timeZones: 'https://www.iana.org/time-zones',
  keepingSecrets: 'https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html',
} as const;

const allowed: ReadonlySet<string> = new Set(Object.values(links));

/**
 * Opens a listed link, or the reference of the current server, in the browser. Ignores any other URL, because it could start another
 * program on the machine.
 */
export function openLink(url: string, server = ''): void {
  if (allowed.has(url) || (server !== '' && url === referenceUrl(server))) void shell.openExternal(url).catch(() => undefined);
}
