import { ask } from '../support/http.ts';
import { until } from '../support/until.ts';
import type { Provider } from './provider.ts';

export type FoundCall = { requestId: string; contactId: string; state: string; phone: string | null };
/** A call without a request ID gets its contact ID as its request ID. */
export type Body = { requestId?: string; contact: { phone: string } };
export type Reply = { status: number | null; contactId: string | null };

/** In ms. Every request must get its response within this time, which includes slack for the load on the same machine. */
const deadline = 6_000 + 2_000;
/** Longer than the deadline, so that a late response is noticed. */
const patience = 20_000;

/** Sends requests, and remembers what was acknowledged. */
export class Ledger {
  /** Contact IDs by request ID. */
  readonly placed = new Map<string, string>();
  /** Request IDs by contact ID. */
  readonly cancelled = new Map<string, string>();
  /** Keys with which nothing may be accepted anymore. */
  readonly revoked = new Set<string>();
  readonly notes: string[] = [];
  /** The provider whose calls are checked. */
  provider: Provider | null = null;
  /** Phone numbers of calls without a request ID that got a 503. */
  readonly #refused = new Set<string>();
  readonly #lost = new Set<string>();
  readonly #statuses: Record<string, number> = {};
  #slowest = 0;
  /** The columns of the table. All except the first two must be 0. */
  readonly #counts = {
    sent: 0,
    acknowledged: 0,
    /** Calls that the core acknowledged as placed or cancelled, but that aren't placed or cancelled in the database. */
    lost: 0,
    /** Calls without a request ID that the core refused with 503, but that are in the database. */
    'placed though 503': 0,
    /** Calls that were handed off although the cancel returned 200. */
    'dialed though cancelled': 0,
    'dialed twice': 0,
    late: 0,
    /** Requests that were accepted although the revocation or limit of their key had been acknowledged before they were sent. */
    'accepted too late': 0,
    /** How many times a core said that it was ready although it couldn't write, or that it wasn't ready although it could write. */
    'wrongly ready': 0,
    other: 0,
  };

  note(text: string): void {
    this.notes.push(text);
  }

  /** Counts a fault. */
  fail(note: string, column: 'wrongly ready' | 'other' = 'other'): void {
    this.#counts[column]++;
    this.note(note);
  }

  /** Counts a fault if the condition doesn't become true within this time in ms. */
  async expect(condition: () => boolean | Promise<boolean>, within: number, ...fault: Parameters<Ledger['fail']>): Promise<void> {
    if (!(await until(condition, within))) this.fail(...fault);
  }

  async place(url: string, key: string, body: Body): Promise<Reply> {
    const reply = await this.#send('POST', url, key, body);
    if (reply.status === 503 && body.requestId === undefined) this.#refused.add(body.contact.phone);
    if (reply.status !== 202 || reply.contactId === null) return reply;
    const { requestId = reply.contactId } = body;
    const known = this.placed.get(requestId) ?? reply.contactId;
    if (known !== reply.contactId) this.fail(`${requestId} was acknowledged as two calls`);
    this.placed.set(requestId, known);
    return reply;
  }

  async cancel(url: string, key: string, requestId: string): Promise<Reply> {
    const reply = await this.#send('DELETE', `${url}/by-request-id/${requestId}`, key);
    if (reply.status === 200 && reply.contactId !== null) this.cancelled.set(reply.contactId, requestId);
    return reply;
  }

  async #send(method: 'POST' | 'DELETE', url: string, key: string, body?: Body): Promise<Reply> {
    const [counts, isRevoked, sentAt] = [this.#counts, this.revoked.has(key), performance.now()];
    counts.sent++;
    const answer = await ask(method, url, { key, body, signal: AbortSignal.timeout(patience) }).catch(() => null);
    const took = performance.now() - sentAt;
    this.#slowest = Math.max(this.#slowest, took);
    if (took > deadline) counts.late++;
    const status = answer?.status ?? null;
    this.#statuses[String(status)] = (this.#statuses[String(status)] ?? 0) + 1;
    if (status === null || status >= 300) return { status, contactId: null };
    if (isRevoked) counts['accepted too late']++;
    return { status, contactId: String(answer?.json['contactId']) };
  }

  /** Compares the calls in the database with the acknowledged ones: with all of them, or only with those in the second argument. */
  compare(calls: readonly FoundCall[], { placed, cancelled }: Pick<Ledger, 'placed' | 'cancelled'> = this): void {
    const byRequestId = new Map(calls.map((call) => [call.requestId, call]));
    if (byRequestId.size !== calls.length) this.fail('one request ID has two calls');
    for (const [requestId, contactId] of placed) if (byRequestId.get(requestId)?.contactId !== contactId) this.#lost.add(requestId);
    for (const requestId of cancelled.values()) if (byRequestId.get(requestId)?.state !== 'cancelled') this.#lost.add(requestId);
    this.#counts['placed though 503'] = calls.filter(({ phone }) => phone !== null && this.#refused.has(phone)).length;
  }

  /** Returns the columns of the table, and notes the responses. */
  count() {
    this.note(`responses ${JSON.stringify(this.#statuses)}, the slowest after ${Math.round(this.#slowest)} ms`);
    return {
      ...this.#counts,
      lost: this.#lost.size,
      acknowledged: this.placed.size + this.cancelled.size,
      'dialed though cancelled': [...this.cancelled.keys()].filter((contactId) => this.provider?.hasCalled(contactId)).length,
      'dialed twice': this.provider?.calledTwice() ?? 0,
    };
  }
}
