import type { ApiKeyView } from '#contract/console/api-keys.ts';
import type { SettingsFile } from './settings.ts';

type NoticeDeps = {
  settings: SettingsFile;
  /** Lists the keys that the user sees on a server; null if that isn't possible now. */
  listKeys: () => Promise<{ server: string; apiKeys: readonly ApiKeyView[] } | null>;
  show: (notice: { title: string; body: string; server: string }) => void;
};

const soonMs = 7 * 86_400_000;
const named = 3;

/** Notifies the user of keys that expire within a week, once a day for each key. @param now in ms */
export async function notifyOfExpiry({ settings, listKeys, show }: NoticeDeps, now: number): Promise<void> {
  if (!settings.current.notifiesExpiry) return;
  const listed = await listKeys();
  if (!listed) return;
  const { server, apiKeys } = listed;
  const today = new Date(now).toDateString();
  const shownToday = settings.current.notified.day === today ? settings.current.notified.keys : [];
  const toId = ({ id }: ApiKeyView) => `${server} ${id}`;
  const due = apiKeys
    .filter((key) => {
      const left = key.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(key.expiresAt) - now;
      return left > 0 && left < soonMs && !shownToday.includes(toId(key));
    })
    .toSorted((a, b) => Date.parse(a.expiresAt ?? '') - Date.parse(b.expiresAt ?? ''));
  if (due.length === 0) return;
  await settings.change({ notified: { day: today, keys: [...shownToday, ...due.map(toId)] } });
  const lines = due.slice(0, named).map(describe);
  const more = due.length > named ? [`and ${due.length - named} more`] : [];
  const title = due.length === 1 ? 'An API key expires soon' : `${due.length} API keys expire soon`;
  show({ title, body: [...lines, ...more, new URL(server).host].join('\n'), server });
}

function describe({ name, expiresAt, expiryTimeZone }: ApiKeyView): string {
  const dayIn = (timeZone?: string) =>
    new Date(expiresAt ?? '').toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone });
  try {
    return `${name}: ${dayIn(expiryTimeZone ?? undefined)}`;
  } catch {
    // The server may know a newer zone. Like the list, this uses the computer's own.
    return `${name}: ${dayIn()}`;
  }
}
