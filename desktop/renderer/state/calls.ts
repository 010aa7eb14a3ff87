import { DateTime } from 'luxon';
import { type CallState, callStates } from '#contract/calls/states.ts';
import type { CallView } from '#contract/console/calls.ts';
import { outcomeGroups } from './charts.ts';
import { day, oneOf, sortBy, text, unwritten, viewFields } from './filters.ts';
import { formatMinute, type Sort } from './format.ts';

/**
 * The user's settings on the calls screen.
 *
 * @property campaign the ID of the campaign whose calls are listed; empty for all campaigns together
 * @property open the contact ID of the call whose details are shown, in a campaign's list
 * @property call the same in the list of all campaigns, but with the campaign's ID in front of it: `c1/k1`
 * @property by without a campaign: whether all calls are listed, or the outcomes of each campaign
 * @property sort how the campaigns are sorted
 * @property pages how many pages of calls are loaded
 */
export type CallsSettings = {
  campaign: string;
  open: string;
  call: string;
  by: 'calls' | 'campaigns';
  state: CallState | null;
  apiKey: string;
  search: string;
  from: string;
  to: string;
  sort: Sort<string>;
  pages: number;
};

export const callsView = viewFields<CallsSettings>('calls', ['campaign', 'open'], {
  campaign: text(),
  open: text(),
  call: text(),
  by: oneOf(['calls', 'campaigns'], 'calls'),
  state: oneOf(callStates, null),
  apiKey: text(),
  search: text(),
  from: day(),
  to: day(),
  sort: sortBy(['name', 'account', 'total', ...outcomeGroups.map(({ name }) => name)], { column: 'total', isDescending: true }),
  pages: unwritten(1),
});

/**
 * Returns the filter of the chart, which counts the calls that the list shows. A single day is only highlighted among the last 30 days, so
 * that the user can compare it with the others.
 */
export function chartFilter({ state, apiKey, from, to }: CallsSettings, search: string, firstDay: string) {
  const isMarked = from === to && (from === '' || from >= firstDay);
  return { state, apiKey, search, ...(isMarked ? { from: '', to: '' } : { from, to }) };
}

/** Returns the call whose details are shown. */
export function getOpenCall({ campaign, open, call }: CallsSettings): { campaignId: string; contactId: string } | null {
  if (open !== '') return { campaignId: campaign, contactId: open };
  const [campaignId, contactId] = call.split('/');
  return campaignId && contactId ? { campaignId, contactId } : null;
}

type HeldCall = Pick<CallView, 'heldUntil' | 'heldZone'>;

/**
 * Says that calling hours hold a call, and until when: "held until 24 Nov 2026, 09:00 Europe/Berlin".
 *
 * @param ownZone used instead if the number may be in several zones
 */
export function describeHeld({ heldUntil, heldZone }: HeldCall, ownZone: string): string | null {
  if (!heldUntil) return null;
  const until = DateTime.fromISO(heldUntil, { zone: heldZone ?? ownZone });
  return `held until ${formatMinute(until)} ${until.zoneName}`;
}

/** Says why a call waits, or how it ended. A retry may wait for calling hours, and its detail says why it's retried. */
export function describeState(call: HeldCall & Pick<CallView, 'detail'>, ownZone: string): string | null {
  const parts = [describeHeld(call, ownZone), call.detail].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(' · ');
}

/** Returns the time from dialing to the end; null if a call wasn't dialed or hasn't ended. */
export function callDurationMs({ dialedAt, endedAt }: Pick<CallView, 'dialedAt' | 'endedAt'>): number | null {
  return dialedAt === null || endedAt === null ? null : Math.max(0, Date.parse(endedAt) - Date.parse(dialedAt));
}
