import { type CallState, callStates } from '#contract/calls/states.ts';
import { outcomeGroups } from '../../components/charts/outcomes.ts';
import { day, oneOf, sortBy, text, unwritten, viewFields } from '../../state/address/fields.ts';
import type { Sort } from '../../state/format/sorting.ts';

/**
 * The user's settings on the calls screen.
 *
 * @property campaign the ID of the campaign whose calls are listed; empty for all campaigns together
 * @property open the contact ID of the call whose details show
 * @property sort of the campaigns
 * @property pages how many pages of calls are loaded
 */
export type CallsSettings = {
  campaign: string;
  open: string;
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
  state: oneOf(callStates, null),
  apiKey: text(),
  search: text(),
  from: day(),
  to: day(),
  sort: sortBy(['name', 'account', 'total', ...outcomeGroups.map(({ name }) => name)], { column: 'total', isDescending: true }),
  pages: unwritten(1),
});
