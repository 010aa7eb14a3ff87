import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type ProblemBody, problemMediaType, requestIdHeader } from '#contract/problems.ts';
import { jsonLine, toBody } from '../../http/middleware/every-request.ts';
import { SecureResponse } from './tls.ts';

/**
 * The number of waiting requests that start in one iteration of the event loop, across all connections. Clients that don't pipeline come
 * first, and other work in the iteration waits for at most this many requests.
 */
const startsPerIteration = 4;

/**
 * A body may arrive in this many chunks, plus one for each `bytesPerChunk` bytes. Each chunk costs a callback, even if it isn't read, so
 * one-byte chunks would keep the core busy for ten times as long as it takes to send them.
 */
const maxChunks = 1_000;
const bytesPerChunk = 64;

/** How many bytes of a chunked body are parsed per iteration. One read may have ten thousand chunks, which would delay others. */
const bytesPerIteration = 512;

/** What a connection does, and what waits on it: data that hasn't been parsed. */
type State =
  | { is: 'idle' }
  /** A request or its response is in progress. */
  | { is: 'busy' }
  /** The headers of the next request have been read. `start` starts it, and `rest` is the data after its headers. */
  | { is: 'request waits'; start: () => void; rest: Buffer[] }
  /** A part of a body waits for the next iteration. The response may have ended before it. */
  | { is: 'body waits'; rest: Buffer[]; after: 'idle' | 'busy' }
  /** Nothing more is read. If a response is in progress, it's the last one. */
  | { is: 'closing' };

type Pipeline = {
  socket: ParsedSocket;
  observer: RequestObserver;
  state: State;
  /** The response in progress. */
  response: ServerResponse | null;
  /** The iteration of the event loop that started the last request. */
  startedIn: number;
  /** How many more chunks the current body may have. */
  chunksLeft: number;
  /** Whether the client has closed its side, but data that it sent before is still waiting. */
  isEndHeld: boolean;
};

const pipelines = new WeakMap<Socket, Pipeline>();

export type RequestObserver = { onStart(): void; onEnd(): void; onTooMuchWaiting(): void };

/**
 * Starts a request only when the previous one on the same connection has its response, and reads nothing more until then. Node's server
 * would read and start pipelined requests without limit, so one connection could cause as much work as thousands.
 *
 * The parser stops after the headers of a request that has to wait. By then, the whole body of the request in progress has arrived, so
 * pausing the socket doesn't hold it up. In each iteration of the event loop, a few waiting requests start, one connection after the other.
 *
 * @param maxHeldBytes the limit for all waiting data. Without it, connections from many networks could fill the memory
 */
export function serveOneAtATime(server: Server, getObserver: (socket: Socket) => RequestObserver, maxHeldBytes: number): void {
  let heldBytes = 0;
  const holding = new Set<Pipeline>();
  /** The connections whose waiting request or body may go on. */
  const ready = new Set<Pipeline>();
  let isScheduled = false;
  let iteration = 0;
  let isIterationMarked = false;

  function move(pipeline: Pipeline, state: State): void {
    const { state: before } = pipeline;
    pipeline.state = state;
    // This is all for most requests.
    if (!('rest' in before) && !('rest' in state)) return;
    heldBytes += heldSize(state) - heldSize(before);
    if ('rest' in state) holding.add(pipeline);
    else holding.delete(pipeline);
    if (heldBytes > maxHeldBytes) cutLargest();
  }

  /** Adds data to what waits. */
  function hold(pipeline: Pipeline, ...bytes: Buffer[]): void {
    const { state } = pipeline;
    if ('rest' in state) move(pipeline, { ...state, rest: [...state.rest, ...bytes] });
    // Stop reading again, because with TLS, one read may return several pieces.
    stopReading(pipeline.socket);
  }

  function holdBody(pipeline: Pipeline, bytes: Buffer): void {
    move(pipeline, { is: 'body waits', rest: [bytes], after: pipeline.state.is === 'idle' ? 'idle' : 'busy' });
    stopReading(pipeline.socket);
    continueSoon(pipeline);
  }

  /** Cuts off the connection with the most waiting data, because the newest one may have only a small request. */
  function cutLargest(): void {
    const largest = [...holding].reduce((a, b) => (heldSize(b.state) > heldSize(a.state) ? b : a));
    largest.observer.onTooMuchWaiting();
    largest.socket.destroy();
    move(largest, { is: 'closing' });
  }

  /** Called when the parser has read the headers of a request. @returns what the parser does next */
  function receive(pipeline: Pipeline, request: ParsedRequest, start: () => number): number {
    const isIdle = pipeline.state.is === 'idle';
    // Check the iteration, too. A response may be complete before the parser has reached the end of the data that was read. Without this
    // check, all requests in that data could start in one iteration.
    if (isIdle && pipeline.startedIn !== iteration && (request.upgrade || !isChunked(request))) {
      begin(pipeline);
      return start();
    }
    // Node handles CONNECT out of order; `answerConnect` handles it in order.
    if (request.method === 'CONNECT') return start();
    // The parser can't be paused here. Clients don't switch protocols while a request is waiting for its response.
    if (request.upgrade) return upgrades;
    move(pipeline, { is: 'request waits', start, rest: [] });
    if (isIdle) continueSoon(pipeline);
    stopReading(pipeline.socket);
    return pauses;
  }

  function begin(pipeline: Pipeline): void {
    move(pipeline, { is: 'busy' });
    pipeline.startedIn = iteration;
    pipeline.chunksLeft = maxChunks;
    pipeline.observer.onStart();
    if (isIterationMarked) return;
    isIterationMarked = true;
    setImmediate(() => {
      iteration++;
      isIterationMarked = false;
    });
  }

  /** Called when the response has been passed to the system, or if the connection breaks. */
  function end(pipeline: Pipeline): void {
    const { state } = pipeline;
    pipeline.response = null;
    if (state.is === 'busy') move(pipeline, { is: 'idle' });
    if (state.is === 'body waits') state.after = 'idle';
    pipeline.observer.onEnd();
    if ('rest' in pipeline.state) continueSoon(pipeline);
  }

  function continueSoon(pipeline: Pipeline): void {
    ready.add(pipeline);
    schedule();
  }

  function schedule(): void {
    if (isScheduled || ready.size === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      // Iterate over a copy, because a connection with more of its body is added again, for the next iteration.
      for (const pipeline of [...ready.values().take(startsPerIteration)]) {
        ready.delete(pipeline);
        goOn(pipeline);
      }
      schedule();
    });
  }

  /** Starts the waiting request, or continues the waiting body. */
  function goOn(pipeline: Pipeline): void {
    const { socket, state } = pipeline;
    const { parser } = socket;
    if (!('rest' in state) || !parser || !socket.writable) return;
    if (state.is === 'request waits') {
      begin(pipeline);
      state.start();
    } else move(pipeline, { is: state.after });
    parser.resume();
    const bytes = state.rest.length === 1 ? (state.rest[0] ?? nothing) : Buffer.concat(state.rest);
    const until = isInChunkedBody(parser) ? bytesPerIteration : bytes.length;
    // Emit the data even if it's empty, because the parser has to reach the end of the request. The next request in the data waits again.
    socket.emit('data', bytes.length === 0 ? nothing : bytes.subarray(0, until));
    const more = bytes.subarray(until);
    if (isHeld(pipeline)) hold(pipeline, ...(more.length > 0 ? [more] : []));
    else if (more.length > 0) holdBody(pipeline, more);
    else continueBody(socket, parser);
    if (pipeline.isEndHeld && !isHeld(pipeline)) socket.push(null);
  }

  function watch(socket: ParsedSocket): void {
    const { parser } = socket;
    if (!parser) return;
    const pipeline: Pipeline = {
      ...{ socket, observer: getObserver(socket), state: { is: 'idle' }, response: null },
      ...{ startedIn: -1, chunksLeft: maxChunks, isEndHeld: false },
    };
    pipelines.set(socket, pipeline);
    countChunks(parser);
    const { onIncoming } = parser;
    parser.onIncoming = (request, keepAlive) => receive(pipeline, request, () => onIncoming(request, keepAlive));
    // Node resumes the socket when a body has been read to its end. Stop it again if the next request has to wait.
    socket.on('resume', () => {
      if (isHeld(pipeline)) stopReading(socket);
    });
    // Hold back the end of the data, too. With TLS, it arrives even if the socket is paused, and Node would then close the connection after
    // the response in progress.
    const push = socket.push.bind(socket);
    socket.push = (chunk: unknown, encoding) => {
      pipeline.isEndHeld = chunk === null && isHeld(pipeline);
      return pipeline.isEndHeld ? false : push(chunk, encoding);
    };
    // A client may close its side of the connection after its last request. If that request may have changed something, the client gets
    // its response (see listener.ts). A client that was only reading has most likely gone, so stop working for it.
    socket.on('end', () => {
      if (['GET', 'HEAD'].includes(pipeline.response?.req.method ?? '')) socket.end();
    });
    socket.once('close', () => {
      move(pipeline, { is: 'closing' });
      ready.delete(pipeline);
    });
  }

  server.on('connection', watch).on('secureConnection', watch);
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const pipeline = pipelines.get(socket);
    if (!pipeline) return;
    pipeline.response = response;
    response.on('close', () => end(pipeline));
  });
  server.on('clientError', (error: ClientError, socket: Socket) => {
    const pipeline = pipelines.get(socket);
    const { state, response } = pipeline ?? { state: null, response: null };
    if (error.code === 'HPE_PAUSED' && pipeline && error.rawPacket) {
      const isFirst = state?.is === 'request waits' && state.rest.length === 0;
      if (isHeld(pipeline)) hold(pipeline, isFirst ? error.rawPacket.subarray(error.bytesParsed) : error.rawPacket);
      else holdBody(pipeline, error.rawPacket);
    } else if (pipeline && response?.req.complete && !socket.destroyed) {
      // The request in progress will be executed, so its client must get the response first.
      if (!isHeld(pipeline)) move(pipeline, { is: 'closing' });
      stopReading(socket);
      response.once('close', () => answerClientError(error, socket, null));
    } else answerClientError(error, socket, response);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    const earlier = pipelines.get(socket)?.response;
    if (!earlier) return answerConnect(server, request, socket);
    earlier.once('close', () => answerConnect(server, request, socket));
    // Forward this event, because Node no longer does, and without it, a long response would never be written completely.
    socket.on('drain', () => earlier.emit('drain'));
  });
}

/** Whether what arrives now waits, or is dropped because the connection closes. */
function isHeld({ state }: Pipeline): boolean {
  return 'rest' in state || state.is === 'closing';
}

/** Returns the memory that the waiting data occupies, including all of the larger buffers that its pieces may be parts of. */
function heldSize(state: State): number {
  return 'rest' in state ? state.rest.reduce((sum, { buffer }) => sum + buffer.byteLength, 0) : 0;
}

// The rest of this file knows Node's parser.

/**
 * The part of Node's parser that a server uses. Node doesn't document it, and has no setting to handle one request at a time. If a later
 * Node.js changes the parser, tests in `test/http/connections.test.ts` will fail.
 */
type Parser = {
  onIncoming: (request: ParsedRequest, keepAlive: boolean) => number;
  /**
   * The callback that gets each chunk of a body, at the index `kOnBody`. Without it, the parser drops the chunks. Node sets it only once
   * per parser, although parsers are reused for other connections.
   */
  3: OnBody | null;
  socket: Socket;
  incoming: IncomingMessage | null;
  pause(): void;
  resume(): void;
};
type OnBody = (this: Parser, piece: Buffer) => void;
type ParsedSocket = Socket & { parser?: Parser | null };
type ParsedRequest = IncomingMessage & { upgrade?: boolean };

/** Results of `onIncoming`: stop after the headers that were just read (`HPE_PAUSED`), or treat the rest as a different protocol. */
const pauses = 21;
const upgrades = 2;

/** Empty data. It's part of a real buffer, because the parser takes zero bytes without a memory address for the connection's end. */
const nothing = Buffer.alloc(1).subarray(1);

/**
 * Ends the connection if a body has too many chunks. The parser can't be stopped in the middle of the data that was read, but it can be
 * kept from copying the rest chunk by chunk, which for 300 connections took seconds and 100 MB.
 */
function countChunks(parser: Parser): void {
  const onBody = parser[3];
  if (onBody === null || counting.has(onBody)) return;
  const count: OnBody = function (piece) {
    const pipeline = pipelines.get(this.socket);
    if (pipeline) {
      pipeline.chunksLeft -= 1 - piece.length / bytesPerChunk;
      if (pipeline.chunksLeft < 0) {
        this[3] = null;
        // Restore the callback before the parser is reused for another connection, which can happen once this one has closed.
        setImmediate(() => {
          this[3] = count;
        });
        return answerClientError(new Error('too many body chunks'), this.socket, pipeline.response);
      }
    }
    onBody.call(this, piece);
  };
  counting.add(count);
  parser[3] = count;
}

const counting = new WeakSet<OnBody>();

function isChunked({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function isInChunkedBody({ incoming }: Parser): boolean {
  return incoming !== null && !incoming.complete && isChunked(incoming);
}

/** Continues a held body. The rest of a chunked body is held as it arrives, and parsed over several iterations. */
function continueBody(socket: Socket, parser: Parser): void {
  if (!isInChunkedBody(parser)) return void socket.resume();
  parser.pause();
  // If the request's buffer is full, the socket resumes reading when the request is read.
  if (parser.incoming && parser.incoming.readableLength < parser.incoming.readableHighWaterMark) socket.resume();
}

/** Stops reading, even if the socket is already paused, because a pending `resume` may start reading again. */
function stopReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause');
  else socket.pause();
}

type ClientError = Error & { code?: string; bytesParsed?: number; rawPacket?: Buffer };

const problems: Readonly<Record<string, ProblemBody>> = {
  HPE_HEADER_OVERFLOW: { ...toBody('malformed-request', 'The headers are too large.'), status: 431 },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: toBody('too-large', 'The chunk extensions are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: { ...toBody('malformed-request', "The request didn't arrive in time."), status: 408 },
};
const invalidRequest = toBody('malformed-request', "The request isn't valid HTTP.");

/** Sends the same status as Node would without a listener. */
function answerClientError(error: ClientError, socket: Socket, underWay: ServerResponse | null): void {
  if (socket.writable && !underWay?.headersSent) {
    const problem = problems[error.code ?? ''] ?? invalidRequest;
    const body = jsonLine(problem);
    const headers = {
      'Content-Type': problemMediaType,
      'Content-Length': body.length,
      [requestIdHeader]: randomUUID(),
      Connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.write([`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`, ...lines, '', body].join('\r\n'));
  }
  socket.destroy(error);
}

/**
 * Handles CONNECT like every other method, so that callers can't tell the difference. Node would pass on a bare socket (RFC 9110 §9.3.6),
 * or close it if there's no listener. Node also doesn't handle CONNECT in order, and throws if an earlier request on the connection still
 * uses the socket, so one packet from a stranger would stop the core. Upgrades don't need this, because without a listener, they arrive as
 * ordinary requests.
 */
function answerConnect(server: Server, request: IncomingMessage, socket: Socket): void {
  // The earlier response may have ended the connection.
  if (!socket.writable) return;
  const response = new (server instanceof TlsServer ? SecureResponse : ServerResponse)(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  server.emit('request', request, response);
}
