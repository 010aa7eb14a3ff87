import { Agent, request } from 'undici';
import { onDemand } from '../support/tenants.ts';
import type { Provider } from './provider.ts';

export type FoundCall = { requestId: string; contactId: string; state: string; phone: string | null };
/** A call without a request ID gets its contact ID as its request ID. */
export type Body = { requestId?: string; contact: { phone: string } };
export type Reply = { status: number | null; contactId: string | null };
export type Ledger = ReturnType<typeof createLedger>;

/** In ms. Every request must get its response within this time, which includes slack for the load on the same machine. */
const deadline = 6_000 + 2_000;
/** Longer than the deadline, so that a late response is noticed. */
const patience = 20_000;

/** Sends requests, and remembers what was acknowledged. */
export function createLedger() {
  const dispatcher = new Agent();
  /** Contact IDs by request ID. */
  const placed = new Map<string, string>();
  /** Request IDs by contact ID. */
  const cancelled = new Map<string, string>();
  const revoked = new Set<string>();
  const lost = new Set<string>();
  /** Phone numbers of calls without a request ID that got a 503, and of those that were placed anyway. */
  const refused = new Set<string>();
  const placedThough503 = new Set<string>();
  const statuses: Record<string, number> = {};
  const notes: string[] = [];
  const counted = { sent: 0, late: 0, stale: 0, wronglyReady: 0, other: 0 };
  let slowest = 0;
  let provider: Provider | undefined;

  async function send(method: 'POST' | 'DELETE', url: string, key: string, body: Body | null): Promise<Reply> {
    const isRevoked = revoked.has(key);
    counted.sent++;
    const sentAt = performance.now();
    const reply = await exchange(method, url, key, body).catch(() => ({ status: null, contactId: null }));
    const took = performance.now() - sentAt;
    slowest = Math.max(slowest, took);
    if (took > deadline) counted.late++;
    statuses[String(reply.status)] = (statuses[String(reply.status)] ?? 0) + 1;
    if (isRevoked && reply.status !== null && reply.status < 300) counted.stale++;
    return reply;
  }

  async function exchange(method: 'POST' | 'DELETE', url: string, key: string, body: Body | null): Promise<Reply> {
    const response = await request(url, {
      ...{ method, dispatcher, signal: AbortSignal.timeout(patience) },
      headers: { 'X-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    const text = await response.body.text();
    return { status: response.statusCode, contactId: response.statusCode < 300 ? String(JSON.parse(text).contactId) : null };
  }

  const ledger = {
    placed,
    cancelled,
    note: (text: string) => void notes.push(text),
    fail(note: string): void {
      counted.other++;
      notes.push(note);
    },
    wronglyReady(note: string): void {
      counted.wronglyReady++;
      notes.push(note);
    },
    /** From now on, nothing may be accepted with this key. */
    revoke: (key: string) => void revoked.add(key),
    /** Undoes `revoke`, for a key that was only limited. */
    allow: (key: string) => void revoked.delete(key),
    /** Sets the provider whose calls the ledger checks. */
    watch(newProvider: Provider): void {
      provider = newProvider;
    },
    async place(url: string, campaignId: string, key: string, body: Body): Promise<Reply> {
      const reply = await send('POST', onDemand(url, campaignId), key, body);
      if (reply.status === 503 && body.requestId === undefined) refused.add(body.contact.phone);
      if (reply.status !== 202 || reply.contactId === null) return reply;
      const { requestId = reply.contactId } = body;
      const known = placed.get(requestId) ?? reply.contactId;
      if (known !== reply.contactId) ledger.fail(`${requestId} was acknowledged as two calls`);
      placed.set(requestId, known);
      return reply;
    },
    async cancel(url: string, campaignId: string, key: string, requestId: string): Promise<Reply> {
      const reply = await send('DELETE', `${onDemand(url, campaignId)}/by-request-id/${requestId}`, key, null);
      if (reply.status === 200 && reply.contactId !== null) cancelled.set(reply.contactId, requestId);
      return reply;
    },
    /** Compares the acknowledged calls with those in the database. */
    compare(calls: readonly FoundCall[]): void {
      const byRequestId = new Map(calls.map((call) => [call.requestId, call]));
      if (byRequestId.size !== calls.length) ledger.fail('one request ID has two calls');
      for (const [requestId, contactId] of placed) if (byRequestId.get(requestId)?.contactId !== contactId) lost.add(requestId);
      for (const requestId of cancelled.values()) if (byRequestId.get(requestId)?.state !== 'cancelled') lost.add(requestId);
      for (const { phone } of calls) if (phone !== null && refused.has(phone)) placedThough503.add(phone);
    },
    /** Returns the columns of the table. All except the first two must be 0. */
    counts: () => ({
      sent: counted.sent,
      acknowledged: placed.size + cancelled.size,
      /** Calls that the core acknowledged as placed or cancelled, but that aren't placed or cancelled in the database. */
      lost: lost.size,
      /** Calls without a request ID that the core refused with 503, but that are in the database. */
      'placed though 503': placedThough503.size,
      /** Calls that were handed off although the cancel returned 200. */
      'dialed though cancelled': [...cancelled.keys()].filter((contactId) => provider?.hasCalled(contactId)).length,
      'dialed twice': provider?.calledTwice() ?? 0,
      late: counted.late,
      /** Requests that were accepted although the revocation or limit of their key had been acknowledged before they were sent. */
      'accepted too late': counted.stale,
      /** How often a core said that it was ready although it couldn't write, or that it wasn't ready although it could write. */
      'wrongly ready': counted.wronglyReady,
      other: counted.other,
    }),
    notes: () => [...notes, `responses ${JSON.stringify(statuses)}, the slowest after ${Math.round(slowest)} ms`],
    close: () => dispatcher.destroy(),
  };
  return ledger;
}
