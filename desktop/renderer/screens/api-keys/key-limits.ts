import type { ApiKeyDetailsView, ApiKeyView, ChangeApiKey } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { canonicalNetworks, isInNetworks, parseNetwork } from '#contract/text/networks.ts';
import { formatNumber, pluralize } from '../../state/format/format.ts';

/** The form's input. @property addresses one per line, or separated by commas or spaces */
type LimitsDraft = { addresses: string; callsPerDay: string };

export function toDraft({ addresses, callsPerDay }: ApiKeyView): LimitsDraft {
  return { addresses: addresses?.join('\n') ?? '', callsPerDay: callsPerDay === null ? '' : String(callsPerDay) };
}

function splitAddresses(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== '');
}

/** Returns what's wrong with the addresses, or null. */
export function addressesProblem(text: string): string | null {
  const parts = splitAddresses(text);
  for (const part of parts) {
    const network = parseNetwork(part);
    if (typeof network === 'string') return `${part}: ${network}`;
  }
  return parts.length > limits.networks ? `Enter at most ${limits.networks} addresses and networks.` : null;
}

/** Returns what's wrong with the number of calls, or null. */
export function callsPerDayProblem(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  const isValid = /^\d+$/.test(trimmed) && Number(trimmed) >= 1 && Number(trimmed) <= limits.callsPerDay;
  return isValid ? null : `Enter a whole number from 1 to ${formatNumber(limits.callsPerDay)}, or leave it empty for no limit.`;
}

/**
 * Returns only the limits that the user has changed, with the version that they saw. Otherwise, a dialog that has been open for a while
 * would undo what someone else has changed since.
 */
export function changedLimits(apiKey: ApiKeyView, draft: LimitsDraft): ChangeApiKey | null {
  const addresses = canonicalNetworks(splitAddresses(draft.addresses));
  const callsPerDay = draft.callsPerDay.trim() === '' ? null : Number(draft.callsPerDay);
  const hasNewAddresses = addresses.join() !== (apiKey.addresses ?? []).join();
  const change = {
    ...(hasNewAddresses ? { addresses: addresses.length === 0 ? null : addresses } : {}),
    ...(callsPerDay === apiKey.callsPerDay ? {} : { callsPerDay }),
  };
  return Object.keys(change).length === 0 ? null : { ...change, limitsVersion: apiKey.limitsVersion };
}

/** Warns if the addresses exclude the client that used the key last, or if the server can't tell clients apart. */
export function lockOutWarning(
  text: string,
  view: Pick<ApiKeyDetailsView, 'lastUsedAddress'> & { ignoredProxy?: string | undefined },
): string | null {
  const networks = splitAddresses(text)
    .map(parseNetwork)
    .filter((network) => typeof network !== 'string');
  if (networks.length === 0) return null;
  const { lastUsedAddress, ignoredProxy } = view;
  if (ignoredProxy !== undefined)
    return `The server sees the address of a proxy, ${ignoredProxy}, instead of its clients’ addresses. Ask the operator to add the proxy to TRUSTED_PROXIES first.`;
  if (lastUsedAddress === null || isInNetworks(networks, lastUsedAddress)) return null;
  return `The key was last used from ${lastUsedAddress}, which isn’t in this list. That client will be refused immediately.`;
}

/** Describes the limits of a key: "only from 2 networks, 1,000 calls per day". Empty if there are none. */
export function summarizeLimits({ addresses, callsPerDay }: Pick<ApiKeyView, 'addresses' | 'callsPerDay'>): string {
  const parts = [
    ...(addresses === null ? [] : [addresses.length === 1 ? `only from ${addresses[0]}` : `only from ${addresses.length} networks`]),
    ...(callsPerDay === null ? [] : [`${pluralize(callsPerDay, 'call')} per day`]),
  ];
  return parts.join(', ');
}
