/**
 * Shares lookups of the same ID: all requests that arrive while a lookup is in progress share a second one that starts after it. So each
 * request sees everything that was committed before it arrived, and hundreds of requests with one session can't fill the database's queue
 * and delay other users.
 */
export function shareLookups<Id, Found>(find: (id: Id) => Promise<Found>): (id: Id) => Promise<Found> {
  const inProgress = new Map<Id, Promise<Found>>();
  const next = new Map<Id, Promise<Found>>();

  function start(id: Id): Promise<Found> {
    const lookUp = find(id).finally(() => inProgress.delete(id));
    inProgress.set(id, lookUp);
    return lookUp;
  }

  async function startAfter(earlier: Promise<Found>, id: Id): Promise<Found> {
    await earlier.catch(() => undefined);
    next.delete(id);
    return start(id);
  }

  return (id) => {
    const current = inProgress.get(id);
    if (!current) return start(id);
    const following = next.get(id) ?? startAfter(current, id);
    next.set(id, following);
    return following;
  };
}
