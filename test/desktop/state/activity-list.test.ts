import { expect } from 'chai';
import type { ActivityView } from '#contract/console/activity.ts';
import { actorName, addressLabel, describeSubject, labelActors, mergeActivity } from '../../../desktop/renderer/state/activity.ts';

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

describe('the activity', () => {
  it("names an event's origin: an address, or the server together with the operator's login name", () => {
    expect(['192.0.2.1', 'local', 'local:ada (as callkey)'].map(addressLabel)).to.deep.equal([
      '192.0.2.1',
      'the server itself',
      'the server itself (ada (as callkey))',
    ]);
  });

  it('names the operator if no user is recorded, but no one if a request was refused', () => {
    const actions = ['user.added', 'api-key.refused', 'session.refused-unknown', 'session.refused-unverified'];
    expect(actions.map((action) => actorName(event('e', { actor: null, action }), 'me'))).to.deep.equal([
      'The operator',
      'Someone',
      'Someone',
      'Someone',
    ]);
  });

  it('distinguishes users who share a name by their email address, in the filter', () => {
    const actors = [
      { id: 'me', name: 'Sam', email: 'sam@example.com' },
      { id: 'a', name: 'Sam', email: 'sam.a@example.com' },
      { id: 'b', name: 'Bo', email: 'bo@example.com' },
      { id: 'gone', name: 'Sam' },
    ];
    expect(labelActors(actors, 'me').map(([, label]) => label)).to.deep.equal(['You', 'Sam (sam.a@example.com)', 'Bo', 'Sam']);
  });

  it('counts what was saved in an export, if that was recorded', () => {
    const names = ['api-keys (116 rows)', 'users (1 rows)', 'calls', 'calls (from 2026-11-08 to 2026-11-08)'];
    expect(names.map((name) => describeSubject('list.exported', name))).to.deep.equal([
      '116 API keys',
      '1 user',
      'calls',
      'calls (from 8 Nov 2026 to 8 Nov 2026)',
    ]);
    expect(describeSubject('api-key.created', 'calls')).to.equal('calls');
  });
});

describe('newer activity', () => {
  const view = (...events: string[]): ActivityView => ({
    events: events.map((id) => event(id)),
    nextCursor: events.at(-1) ?? null,
    total: 0,
    totalIsMore: false,
  });

  it('is shown before older events', () => {
    const { events, nextCursor } = mergeActivity(view('5', '4'), view('4', '3', '2'));
    expect(ids(events)).to.deep.equal(['5', '4', '3', '2']);
    expect(nextCursor).to.equal('2');
  });

  it('replaces the older events if there is a gap', () => {
    expect(mergeActivity(view('9', '8'), view('4', '3'))).to.deep.equal(view('9', '8'));
  });
});
