import { expect } from 'chai';
import type { ActivityView } from '#contract/console.ts';
import { addressLabel, mergeActivity } from '../../../desktop/renderer/screens/activity/activity-list.ts';

const event = (id: string, changes: Partial<ActivityView['events'][number]> = {}): ActivityView['events'][number] => ({
  id,
  at: '2026-11-21T23:30:00.000Z',
  actor: { id: 'ada', name: 'Ada' },
  action: 'api-key.created',
  subject: { kind: 'api-key', id: 'k', name: 'Key' },
  address: '192.0.2.1',
  ...changes,
});
const ids = (events: readonly { id: string }[]) => events.map(({ id }) => id);

describe('the origin of an event', () => {
  it("is an address, or the server together with the operator's login name", () => {
    expect(['192.0.2.1', 'local', 'local:ada (as callkey)'].map(addressLabel)).to.deep.equal([
      '192.0.2.1',
      'the server itself',
      'the server itself (ada (as callkey))',
    ]);
  });
});

describe('newer activity', () => {
  const view = (...events: string[]): ActivityView => ({ events: events.map((id) => event(id)), nextCursor: events.at(-1) ?? null });

  it('is added before the older events', () => {
    const { events, nextCursor } = mergeActivity(view('5', '4'), view('4', '3', '2'));
    expect(ids(events)).to.deep.equal(['5', '4', '3', '2']);
    expect(nextCursor).to.equal('2');
  });

  it('replaces the older events if there is a gap', () => {
    expect(mergeActivity(view('9', '8'), view('4', '3'))).to.deep.equal(view('9', '8'));
  });
});
