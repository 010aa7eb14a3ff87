import { Agent, request } from 'undici';
import { onDemand } from '../support/tenants.ts';
import type { Calls } from './provider.ts';

/** What a case counts. All but the first two must be 0. */
export type Counts = {
  sent: number;
  acknowledged: number;
  /** Acknowledged, placed or cancelled, and not so in the database. */
  lost: number;
  /** Answered 503, without a request id, and in the database. */
  placedThough503: number;
  /** Handed off although the cancel was answered 200. */
  cancelledAndDialed: number;
  dialedTwice: number;
  late: number;
  /** 2xx with a key whose revoke had been answered before the request was sent. */
  staleYes: number;
  /** Ready while nothing can be written, or unready although it can. */
  wronglyReady: number;
  other: number;
};

export type FoundCall = { requestId: string; contactId: string; state: string; phone: string | null };
/** A call without a request id is in the database under its contact id. */
type Body = { requestId?: string; contact: { phone: string } };
type Reply = { status: number | null; contactId: string | null };
export type Ledger = ReturnType<typeof createLedger>;

/** Every request is answered by then, in ms. */
const deadline = 6_000;
/** For what a busy machine takes: the load runs on the same one. */
const slack = 2_000;
/** Longer than the deadline, so that a late answer is seen. */
const patience = 20_000;

/** Sends requests, and remembers what was acknowledged. */
export function createLedger() {
  const agent = new Agent({ pipelining: 1, bodyTimeout: patience, headersTimeout: patience });
  const placed = new Map<string, string>();
  const cancelled = new Map<string, string>();
  const revoked = new Set<string>();
  const lost = new Set<string>();
  /** Phone numbers of calls without a request id that got 503. */
  const refused = new Set<string>();
  const placedThough503 = new Set<string>();
  const statuses = new Map<number | null, number>();
  const notes: string[] = [];
  const counts = { sent: 0, late: 0, staleYes: 0, wronglyReady: 0, other: 0 };
  let slowest = 0;

  async function send(method: 'POST' | 'DELETE', url: string, key: string, body: object | null): Promise<Reply> {
    const isRevoked = revoked.has(key);
    counts.sent++;
    const sentAt = performance.now();
    const reply = await answerTo(method, url, key, body);
    const took = performance.now() - sentAt;
    slowest = Math.max(slowest, took);
    if (took > deadline + slack) counts.late++;
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    if (isRevoked && reply.status !== null && reply.status < 300) counts.staleYes++;
    return reply;
  }

  async function answerTo(method: 'POST' | 'DELETE', url: string, key: string, body: object | null): Promise<Reply> {
    try {
      const response = await request(url, {
        method,
        dispatcher: agent,
        headers: { 'X-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(patience),
      });
      const text = await response.body.text();
      const contactId: unknown = response.statusCode < 300 ? JSON.parse(text).contactId : null;
      return { status: response.statusCode, contactId: typeof contactId === 'string' ? contactId : null };
    } catch {
      return { status: null, contactId: null };
    }
  }

  const fail = (note: string) => {
    counts.other++;
    notes.push(note);
  };

  return {
    placed,
    cancelled,
    fail,
    note: (text: string) => void notes.push(text),
    /** From now on, nothing may be accepted with this key. */
    revoke: (key: string) => void revoked.add(key),
    wronglyReady(note: string) {
      counts.wronglyReady++;
      notes.push(note);
    },
    async place(url: string, campaignId: string, key: string, body: Body): Promise<Reply> {
      const reply = await send('POST', onDemand(url, campaignId), key, body);
      if (reply.status === 503 && body.requestId === undefined) refused.add(body.contact.phone);
      if (reply.status !== 202 || reply.contactId === null) return reply;
      const { requestId = reply.contactId } = body;
      const known = placed.get(requestId) ?? reply.contactId;
      if (known !== reply.contactId) fail(`${requestId} was acknowledged as two calls`);
      placed.set(requestId, known);
      return reply;
    },
    async cancel(url: string, campaignId: string, key: string, requestId: string): Promise<Reply> {
      const reply = await send('DELETE', `${onDemand(url, campaignId)}/by-request-id/${requestId}`, key, null);
      if (reply.status === 200 && reply.contactId !== null) cancelled.set(reply.contactId, requestId);
      return reply;
    },
    /** Compares the acknowledged calls with those in the database. `isExpected` leaves out calls that an operator has thrown away. */
    compare(found: readonly FoundCall[], isExpected: (requestId: string) => boolean = () => true): void {
      const byRequestId = new Map(found.map((call) => [call.requestId, call]));
      if (byRequestId.size !== found.length) fail('one request id has two calls');
      for (const [requestId, contactId] of placed)
        if (isExpected(requestId) && byRequestId.get(requestId)?.contactId !== contactId) lost.add(requestId);
      for (const requestId of cancelled.values())
        if (isExpected(requestId) && byRequestId.get(requestId)?.state !== 'cancelled') lost.add(requestId);
      for (const { phone } of found) if (phone !== null && refused.has(phone)) placedThough503.add(phone);
    },
    counts(calls: Calls | null): Counts {
      return {
        ...counts,
        acknowledged: placed.size + cancelled.size,
        lost: lost.size,
        placedThough503: placedThough503.size,
        cancelledAndDialed: calls ? [...cancelled.keys()].filter((contactId) => calls.of(contactId) > 0).length : 0,
        dialedTwice: calls ? calls.twice() : 0,
      };
    },
    notes: () => [...notes, `answers ${JSON.stringify(Object.fromEntries(statuses))}, the slowest ${Math.round(slowest)} ms`],
    close: () => agent.destroy(),
  };
}
