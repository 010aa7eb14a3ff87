import { type ActivityFacetsView, type ActivityView, missingActorName, staffAddress } from '#contract/console/activity.ts';
import { counted } from '#contract/text/count.ts';
import { formatDates } from './format.ts';
import { actionLabel, listNouns } from './labels.ts';

export type ActivityEvent = ActivityView['events'][number];

export function actorName({ actor, action }: ActivityEvent, viewerId: string): string {
  if (!actor) return missingActorName(action);
  return actor.id === viewerId ? 'You' : actor.name;
}

/** Returns the users in a filter, by ID. Users with the same name are distinguished by their email address. */
export function labelActors(actors: ActivityFacetsView['actors'], viewerId: string): (readonly [string, string])[] {
  const isShared = (name: string) => actors.filter((each) => each.name === name).length > 1;
  return actors.map(({ id, name, email }) => {
    if (id === viewerId) return [id, 'You'];
    return [id, email !== undefined && isShared(name) ? `${name} (${email})` : name];
  });
}

/** Describes an event in a sentence: "Ada changed the limits of the API key Zapier". @param about the ID that everything shown is about */
export function describeEvent(event: ActivityEvent, viewerId: string, about = ''): string {
  const { action, subject } = event;
  const verb = actionLabel(action);
  const sentence = `${actorName(event, viewerId)} ${verb}`;
  if (concernsOnlyActor(action)) return sentence;
  return subject.id === about && verb.endsWith('the API key')
    ? sentence.replace(/the API key$/, 'this API key')
    : `${sentence} ${describeSubject(action, subject.name)}`;
}

/** Describes what an action was about. A saved list is recorded as `api-keys (116 rows)` or `calls (from 2026-10-01 to 2026-10-31)`. */
export function describeSubject(action: string, name: string): string {
  if (action !== 'list.exported') return name;
  const [, list = '', rows] = /^([a-z-]+)(?: \((\d+) rows\))?$/.exec(name) ?? [];
  const noun = listNouns[list];
  if (noun === undefined) return formatDates(name);
  return rows === undefined ? `${noun}s` : counted(Number(rows), noun);
}

/** The actions whose events describe the new settings completely. So the previous event of the same kind describes the old ones. */
const settings = ['api-key.limited', 'calling-hours.changed', 'pace.changed', 'contact-limits.changed'];

/** Whether the event before it says what its detail replaced. */
export function replacesDetail({ action, detail }: ActivityEvent): boolean {
  return detail !== undefined && settings.includes(action);
}

/** Returns what held before an event; null if that isn't recorded. @param older earlier events about the subject, newest first */
export function findReplaced({ action }: ActivityEvent, older: readonly ActivityEvent[]): string | null {
  const replaced = older.find((event) => event.action === action)?.detail;
  if (replaced !== undefined) return replaced;
  return older.some((event) => /\.(created|added)$/.test(event.action)) ? 'none' : null;
}

/** Formats an event's address. For events that started on the server itself, staff also see the operator's login name: `local:ada`. */
export function addressLabel(address: string): string {
  if (address === 'local') return 'the server itself';
  if (address === staffAddress) return 'service staff';
  return address.startsWith('local:') ? `the server itself (${address.slice('local:'.length)})` : address;
}

export function concernsOnlyActor(action: string): boolean {
  return ['session.started', 'session.ended', 'session.refused'].includes(action);
}

/** Joins the newest page with the older events that were already loaded. */
export function mergeActivity(newest: ActivityView, before: ActivityView): ActivityView {
  const last = newest.events.at(-1);
  const index = last ? before.events.findIndex(({ id }) => id === last.id) : -1;
  // There are more new events than fit on a page.
  if (index < 0) return newest;
  return { ...newest, events: [...newest.events, ...before.events.slice(index + 1)], nextCursor: before.nextCursor };
}
