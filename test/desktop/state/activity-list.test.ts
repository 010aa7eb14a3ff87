import { expect } from 'chai';
import type { ActivityView } from '#contract/console.ts';
import { actorsOf, addressLabel, everything, filterEvents, mergeActivity } from '../../../desktop/renderer/state/activity-list.ts';

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

describe('the filters of activity', () => {
  const events = [
    event('1'),
    event('2', { actor: { id: 'tom', name: 'Tom' }, action: 'api-key.revoked' }),
    event('3', { actor: null, at: '2026-11-20T12:00:00.000Z' }),
  ];
  const found = (changes: Partial<typeof everything>) => ids(filterEvents(events, { ...everything, ...changes }, 'ada', 'Europe/Berlin'));

  it('let everything pass at first', () => expect(found({})).to.deep.equal(['1', '2', '3']));
  it('find a user; the viewer is You', () => {
    expect(actorsOf(events, 'ada')).to.deep.equal(['The operator', 'Tom', 'You']);
    expect(found({ person: 'You' })).to.deep.equal(['1']);
  });
  it('find an action', () => expect(found({ action: 'api-key.revoked' })).to.deep.equal(['2']));
  it('find a day of the zone here', () => expect(found({ day: '2026-11-22' })).to.deep.equal(['1', '2']));
});

describe('where something was done', () => {
  it('is an address, or the server with the name that it knows the operator by', () => {
    expect(['192.0.2.1', 'local', 'local:ada (as callkey)'].map(addressLabel)).to.deep.equal([
      '192.0.2.1',
      'the server itself',
      'the server itself (ada (as callkey))',
    ]);
  });
});

describe('newer activity', () => {
  const view = (...events: string[]): ActivityView => ({ events: events.map((id) => event(id)), nextCursor: events.at(-1) ?? null });

  it('comes before the older events that were loaded already', () => {
    const { events, nextCursor } = mergeActivity(view('5', '4'), view('4', '3', '2'));
    expect(ids(events)).to.deep.equal(['5', '4', '3', '2']);
    expect(nextCursor).to.equal('2');
  });

  it('replaces them where there is a gap', () => {
    expect(mergeActivity(view('9', '8'), view('4', '3'))).to.deep.equal(view('9', '8'));
  });
});
