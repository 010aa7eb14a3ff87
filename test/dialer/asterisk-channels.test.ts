import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type AriEvent, eventSchema, followedChannels } from '../../scripts/providers/asterisk-channels.ts';

type Line = { recording?: string; request?: string; body?: { channelId: string }; event?: unknown };

/** Recorded events from Asterisk 22.10.1, by how the calls were made. */
const recordings = new Map<string, Line[]>();
for (const text of readFileSync(new URL('../recordings/asterisk-22.10.1-ari.ndjson', import.meta.url), 'utf8')
  .trim()
  .split('\n')) {
  const line: Line = JSON.parse(text);
  if (line.recording) recordings.set(line.recording, []);
  else [...recordings.values()].at(-1)?.push(line);
}

/** How each recorded call ended: the rows of the table in core/docs/providers/asterisk.md. */
const endings = {
  'hand-off-k0': ['completed', 'Asterisk: 16 Normal Clearing ANSWER'],
  'hand-off-k1': ['busy', 'Asterisk: 0 Unknown BUSY'],
  'hand-off-k2': ['no_answer', 'Asterisk: 19 User alerting, no answer RINGING'],
  'hand-off-k3': ['failed', 'Asterisk: 0 Unknown CONGESTION'],
  'hand-off-k4': ['busy', 'Asterisk: 21 Call Rejected NOANSWER'],
  'hand-off-k5': ['completed', 'Asterisk: 16 Normal Clearing ANSWER'],
  'hand-off-k6': ['failed', 'Asterisk: 34 Circuit/channel congestion CONGESTION'],
  'hand-off-k7': ['failed', 'Asterisk: 1 Unallocated (unassigned) number NOANSWER'],
  'hand-off-k8': ['no_answer', 'Asterisk: 19 User alerting, no answer NOANSWER'],
  'hand-off-no-context': ['failed', 'Asterisk: 0 Unknown'],
} as const;

describe('the channels of the Asterisk recipe', () => {
  for (const [recording, lines] of recordings) {
    const ids = lines.flatMap(({ body }) => (body && body.channelId in endings ? [body.channelId] : []));
    it(`end as recorded in "${recording}"`, () => {
      const channels = followedChannels();
      for (const id of ids) channels.expect(id);
      const events = lines.flatMap(({ event }) => (event ? [eventSchema.parse(event)] : []));
      const outcomes = events.flatMap((event) => channels.handle(event) ?? []);
      const ended = Object.fromEntries(outcomes.map(({ handoffId, state, detail }) => [handoffId, [state, detail]]));
      expect(ended).to.deep.equal(Object.fromEntries(Object.entries(endings).filter(([id]) => ids.includes(id))));
      expect(outcomes).to.have.length(new Set(ids).size);
      const talked = outcomes.filter(({ state }) => state === 'completed').map(({ durationSeconds }) => durationSeconds);
      expect(Math.min(...talked.map(Number))).to.be.greaterThan(0);
    });
  }

  const at = '2026-11-23T01:54:05.000+0000';
  const ended = (id: string, more: Partial<AriEvent> = {}): AriEvent => ({
    ...{ type: 'ChannelDestroyed', timestamp: at, channel: { id, state: 'Up' }, cause: 16, cause_txt: 'Normal Clearing' },
    ...more,
  });

  it('that still exist after reconnecting are followed to their end, and have no duration if they were already answered', () => {
    const channels = followedChannels();
    channels.found({ id: 'talking', state: 'Up' });
    channels.found({ id: 'ringing', state: 'Ringing' });
    expect(channels.handle(ended('talking'))).to.deep.equal({
      ...{ handoffId: 'talking', state: 'completed', detail: 'Asterisk: 16 Normal Clearing', endedAt: '2026-11-23T01:54:05.000Z' },
    });
    const unanswered = ended('ringing', { channel: { id: 'ringing', state: 'Ringing' }, cause: 17 });
    expect(channels.handle(unanswered)).to.include({ state: 'busy', durationSeconds: 0 });
  });

  for (const [value, answeredBy] of [
    ['HUMAN', 'person'],
    ['MACHINE', 'machine'],
    ['NOTSURE', 'unknown'],
  ] as const)
    it(`were answered by: ${answeredBy}, if the dialplan's AMD says ${value}`, () => {
      const channels = followedChannels();
      channels.found({ id: 'talking', state: 'Up' });
      for (const variable of ['AMDSTATUS', 'AMDCAUSE'])
        channels.handle(ended('talking', { type: 'ChannelVarset', variable, value: variable === 'AMDSTATUS' ? value : 'HUMAN-1' }));
      expect(channels.handle(ended('talking'))).to.include({ state: 'completed', answeredBy });
    });

  it('that are gone after reconnecting have an outcome only if they were answered earlier', () => {
    const channels = followedChannels();
    for (const id of ['talked', 'rang', 'asked']) channels.expect(id);
    for (const [id, state] of [
      ['talked', 'Up'],
      ['rang', 'Ringing'],
    ] as const)
      channels.handle({ type: 'ChannelStateChange', timestamp: at, channel: { id, state } });
    expect(channels.missing(new Set())).to.deep.equal([
      { handoffId: 'talked', state: 'completed', detail: "Asterisk: ended while the recipe wasn't connected" },
    ]);
    // The request to create this channel may still be in progress, so it doesn't count as gone.
    expect(channels.follows('asked')).to.equal(true);
  });

  it('that belong to other applications are ignored', () => {
    expect(followedChannels().handle(ended('1795500000.1'))).to.equal(null);
  });
});
