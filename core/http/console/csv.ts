import { finished, Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { offsetAt } from '#contract/calendar.ts';
import { completeLine, csvFileName, csvRow, csvStart, incompleteLine } from '#contract/files/csv.ts';
import { timestamp } from '#contract/text/text.ts';
import { recordListExport } from '../../domain/audit/activity.ts';
import type { DayRange } from '../../domain/calls/days.ts';
import type { Turn } from '../../domain/fair-queue.ts';
import type { Millis } from '../../domain/instant.ts';
import type { Viewer } from '../../domain/model.ts';
import { Problem } from '../../domain/problem.ts';
import { countRecorded } from '../../domain/sign-in/throttle.ts';
import type { Context, HttpDeps, TakeTurn } from '../middleware/context.ts';
import { toEncodedStream } from '../middleware/encoding.ts';
import { requestNames } from '../middleware/every-request.ts';
import { getActor, getViewer, renewSession } from '../middleware/session.ts';

type Part = { rows: string[][]; nextCursor: string | null };

type Export = {
  list: 'calls' | 'activity' | 'do-not-call';
  days: DayRange;
  head: readonly string[];
  takeTurn: TakeTurn;
  nameSubject?: (first: Part) => string | undefined;
  read: (viewer: Viewer, cursor: string | null, turn: Turn) => Promise<Part>;
};

/** For each user. An export keeps a few megabytes until its client has read them, and a client may read slowly. */
const maxOpen = 3;
const openExports = new Map<string, number>();

/**
 * Sends a list as a file, in parts. Reads only one part ahead of the client, and releases its turn after each, so that no database
 * connection waits for a slow client. Checks the session again before each part. The last line says whether the file is complete.
 */
export async function sendCsv(ctx: Context, deps: HttpDeps, request: Export): Promise<void> {
  ctx.type = 'text/csv; charset=utf-8';
  countOpen(ctx);
  // Read the first part before sending the status, so that a refusal doesn't become a file.
  const first = await readPart(ctx, request, null);
  ctx.attachment(csvFileName(request.list, request.nameSubject?.(first) ?? '', request.days));
  if (ctx.method === 'HEAD') {
    // Only the headers of a stream are sent, which say nothing about its length.
    ctx.body = toEncodedStream(ctx, Readable.from([]));
    return;
  }
  const caller = { viewer: getViewer(ctx), actor: getActor(deps, ctx) };
  await countRecorded(deps.ports, 'export', caller.viewer.id);
  await recordListExport(deps.ports, caller, request.list, fileName(request));
  ctx.body = toEncodedStream(ctx, Readable.from(writeLines(ctx, deps, request, first), { objectMode: false }));
}

/** Until the response is sent or the client is gone. @throws Problem `too-many-requests` */
function countOpen(ctx: Context): void {
  const { id } = getViewer(ctx);
  const add = (change: number) => {
    const open = (openExports.get(id) ?? 0) + change;
    if (open > maxOpen)
      throw new Problem('too-many-requests', `At most ${maxOpen} exports at a time are allowed. Try again in 10 seconds.`, {
        retryAfter: 10,
      });
    if (open > 0) openExports.set(id, open);
    else openExports.delete(id);
  };
  add(1);
  finished(ctx.res, () => add(-1));
}

/** Doesn't include the search text, because that may be a phone number. */
function fileName({ list, days: { from, to } }: Export): string {
  const range = [from && `from ${from}`, to && `to ${to}`].filter((text) => text !== undefined).join(' ');
  return range === '' ? list : `${list} (${range})`;
}

async function* writeLines(ctx: Context, deps: HttpDeps, request: Export, first: Part): AsyncGenerator<string> {
  let sent = 0;
  try {
    yield csvStart + csvRow(request.head);
    for (let part = first; ; ) {
      if (part.rows.length > 0) yield part.rows.map(csvRow).join('');
      sent += part.rows.length;
      if (part.nextCursor === null) break;
      part = await readNext(ctx, deps, request, part.nextCursor);
    }
    yield completeLine(sent);
  } catch (error) {
    const isExpected = error instanceof Problem && error.status < 500;
    if (!isExpected) deps.refusals.onNotServed(error, { ...requestNames(ctx), route: ctx.state.route });
    yield incompleteLine(sent, describeError(error));
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Problem)) return 'Something went wrong on the server. Export again.';
  return error.code === 'unauthorized' ? 'The session has ended. Sign in and export again.' : error.message;
}

/** Attempts to read a part while the server is busy, and the pause between them in ms. */
const tries = 10;
const pause = 1_000;

async function readNext(ctx: Context, deps: HttpDeps, request: Export, cursor: string): Promise<Part> {
  for (let tried = 1; ; tried++) {
    if (deps.draining.aborted) throw new Problem('unavailable', 'The server is stopping. Export again.', { retryAfter: 1 });
    try {
      await renewSession(ctx, deps.ports);
      return await readPart(ctx, request, cursor);
    } catch (error) {
      const isBusy = error instanceof Problem && (error.code === 'unavailable' || error.code === 'too-many-requests');
      if (!isBusy || tried === tries || ctx.res.destroyed) throw error;
      await setTimeout(pause);
    }
  }
}

/** The viewer may have been moved since the last part. */
function readPart(ctx: Context, { takeTurn, read }: Export, cursor: string | null): Promise<Part> {
  return takeTurn((turn) => read(getViewer(ctx), cursor, turn));
}

/** Formats an instant in a time zone, with its offset: "2026-11-28T10:00:00.000+01:00". In UTC, it ends in Z. */
export function zonedTimestamp(at: Millis, timeZone: string): string {
  const minutes = offsetAt(at, timeZone);
  if (minutes === 0 && timeZone === 'UTC') return timestamp(at);
  const pad = (count: number) => String(Math.floor(count)).padStart(2, '0');
  const offset = `${minutes < 0 ? '-' : '+'}${pad(Math.abs(minutes) / 60)}:${pad(Math.abs(minutes) % 60)}`;
  return timestamp(at + minutes * 60_000).replace('Z', offset);
}
