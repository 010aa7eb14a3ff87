import { DateTime } from 'luxon';
import type { ActivityView } from '#contract/console.ts';
import { actionLabel } from './labels.ts';

export type ActivityEvent = ActivityView['events'][number];

/** Empty texts let everything pass. @property day as in a date input: "2026-11-21" */
export type ActivityFilter = { person: string; action: string; day: string };

export const everything: ActivityFilter = { person: '', action: '', day: '' };

/** Who did it, as the viewer reads it. */
export function actorOf({ actor }: ActivityEvent, viewerId: string): string {
  if (!actor) return 'The operator';
  return actor.id === viewerId ? 'You' : actor.name;
}

/** Of the operator, the service's staff see the name that the server's system knows: `local:ada`. */
export function addressLabel(address: string): string {
  if (address === 'local') return 'the server itself';
  return address.startsWith('local:') ? `the server itself (${address.slice('local:'.length)})` : address;
}

/** Signing in and out concern nobody but the actor. */
export function isAboutItself(action: string): boolean {
  return ['session.started', 'session.ended', 'session.refused'].includes(action);
}

/** The events of a person, an action and a day in the given zone. */
export function filterEvents(
  events: readonly ActivityEvent[],
  { person, action, day }: ActivityFilter,
  viewerId: string,
  zone: string,
): ActivityEvent[] {
  return events.filter(
    (event) =>
      (person === '' || actorOf(event, viewerId) === person) &&
      (action === '' || event.action === action) &&
      (day === '' || DateTime.fromISO(event.at, { zone }).toISODate() === day),
  );
}

export function actorsOf(events: readonly ActivityEvent[], viewerId: string): string[] {
  return [...new Set(events.map((event) => actorOf(event, viewerId)))].toSorted((one, other) => one.localeCompare(other));
}

export function actionsOf(events: readonly ActivityEvent[]): string[] {
  return [...new Set(events.map(({ action }) => action))].toSorted((one, other) => actionLabel(one).localeCompare(actionLabel(other)));
}

/** The newest page, followed by the older events that were loaded before. */
export function mergeActivity(newest: ActivityView, before: ActivityView | null): ActivityView {
  const last = newest.events.at(-1);
  const index = before && last ? before.events.findIndex(({ id }) => id === last.id) : -1;
  // More happened than a page holds, or all of it is new.
  if (!before || index < 0) return newest;
  return { events: [...newest.events, ...before.events.slice(index + 1)], nextCursor: before.nextCursor };
}

export const eventCsvHead = ['When', 'Who', 'Action', 'What', 'From'] as const;

export function eventCsvRow(event: ActivityEvent, viewerId: string): string[] {
  const { at, action, subject, address } = event;
  return [at, actorOf(event, viewerId), actionLabel(action), isAboutItself(action) ? '' : subject.name, addressLabel(address)];
}
