// Uses Asterisk's events to follow the calls that the core has handed off. A channel has the same ID as its hand-off.
import { z } from 'zod';
import type { AnsweredBy, Outcome, OutcomeState } from '#contract/calls/dialer.ts';

const channelSchema = z.object({ id: z.string(), state: z.string() });
export const channelsSchema = z.array(channelSchema);
export const eventSchema = z.object({
  type: z.string(),
  timestamp: z.string(),
  channel: channelSchema.optional(),
  /** The called channel, in a `Dial` event. */
  peer: channelSchema.optional(),
  dialstatus: z.string().optional(),
  cause: z.number().optional(),
  cause_txt: z.string().optional(),
  /** In a `ChannelVarset` event. */
  variable: z.string().optional(),
  value: z.string().optional(),
});
export type AriEvent = z.infer<typeof eventSchema>;

type Channel = {
  /** Null until it's answered; `before` if it was answered at an unknown time, before this program followed it. */
  answeredAt: number | 'before' | null;
  dialStatus: string;
  answeredBy?: AnsweredBy;
  /** Whether Asterisk has confirmed that the channel exists. */
  isThere: boolean;
};

/** Q.850 causes that are unambiguous: 17 busy, 18 and 19 no answer, 21 rejected by the phone. */
const causes: Readonly<Record<number, OutcomeState>> = { 17: 'busy', 18: 'no_answer', 19: 'no_answer', 21: 'busy' };
/** Behind a local channel, the cause is often 0 or 16, and the preceding Dial event says more. */
const vague: readonly number[] = [0, 16];
/** The values of AMDSTATUS, which the dialplan's AMD application sets. */
const answerers: Readonly<Record<string, AnsweredBy>> = { HUMAN: 'person', MACHINE: 'machine', NOTSURE: 'unknown' };
const dialStatuses: Readonly<Record<string, OutcomeState>> = { BUSY: 'busy', NOANSWER: 'no_answer', CANCEL: 'no_answer' };

function unansweredState(cause: number, dialStatus: string): OutcomeState {
  const state = vague.includes(cause) ? dialStatuses[dialStatus] : causes[cause];
  if (state !== undefined) return state;
  return cause === 16 && dialStatus === '' ? 'no_answer' : 'failed';
}

/** Follows the channels of hand-offs, from the first attempt to the outcome. */
export function followedChannels() {
  const channels = new Map<string, Channel>();

  function ended(id: string, { answeredAt, dialStatus, answeredBy }: Channel, { timestamp, cause = 0, cause_txt = '' }: AriEvent): Outcome {
    channels.delete(id);
    const endedAt = new Date(Date.parse(timestamp)).toISOString();
    const detail = `Asterisk: ${[cause, cause_txt, dialStatus].filter((part) => part !== '').join(' ')}`.slice(0, 500);
    if (answeredAt === null) return { handoffId: id, state: unansweredState(cause, dialStatus), detail, endedAt, durationSeconds: 0 };
    const seconds =
      answeredAt === 'before' ? {} : { durationSeconds: Math.max(0, Math.round((Date.parse(timestamp) - answeredAt) / 1_000)) };
    return { handoffId: id, state: 'completed', detail, endedAt, ...seconds, ...(answeredBy ? { answeredBy } : {}) };
  }

  return {
    /** Call this before the request to Asterisk, because its events can arrive before its response. */
    expect(id: string): void {
      if (!channels.has(id)) channels.set(id, { answeredAt: null, dialStatus: '', isThere: false });
    },
    forget: (id: string) => channels.delete(id),
    follows: (id: string) => channels.has(id),

    /** Follows a channel that existed before this program started or connected. */
    found({ id, state }: z.infer<typeof channelSchema>): void {
      const channel = channels.get(id) ?? { answeredAt: null, dialStatus: '', isThere: true };
      channels.set(id, { ...channel, isThere: true, answeredAt: channel.answeredAt ?? (state === 'Up' ? 'before' : null) });
    },

    /** Returns the outcomes of answered calls that ended while this program wasn't connected. How unanswered calls ended isn't known. */
    missing(there: ReadonlySet<string>): Outcome[] {
      const gone = [...channels].filter(([id, { isThere }]) => isThere && !there.has(id));
      for (const [id] of gone) channels.delete(id);
      const detail = "Asterisk: ended while the recipe wasn't connected";
      return gone.filter(([, { answeredAt }]) => answeredAt !== null).map(([id]) => ({ handoffId: id, state: 'completed', detail }));
    },

    /** @returns an outcome if the event ends a call */
    handle(event: AriEvent): Outcome | null {
      const { id = '', state } = event.channel ?? event.peer ?? {};
      const channel = channels.get(id);
      if (!channel) return null;
      channel.isThere = true;
      if (event.type === 'Dial' && event.dialstatus) channel.dialStatus = event.dialstatus;
      const answeredBy = event.variable === 'AMDSTATUS' ? answerers[event.value ?? ''] : undefined;
      if (answeredBy) channel.answeredBy = answeredBy;
      if (state === 'Up' || channel.dialStatus === 'ANSWER') channel.answeredAt ??= Date.parse(event.timestamp);
      return event.type === 'ChannelDestroyed' ? ended(id, channel, event) : null;
    },
  };
}
