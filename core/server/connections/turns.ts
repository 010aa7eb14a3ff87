import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type ProblemBody, problemMediaType, requestIdHeader } from '#contract/problems.ts';
import { jsonLine, toBody } from '../../http/middleware/responses.ts';
import { SecureResponse } from './tls.ts';

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

/**
 * Results of `onIncoming`. They make the parser stop after the headers that it just read (`HPE_PAUSED`), or treat the rest as a different
 * protocol.
 */
const pauses = 21;
const upgrades = 2;

/**
 * The number of waiting requests that start in one turn of the event loop, across all connections. Clients that don't pipeline come first,
 * and other work in the turn waits for at most this many requests.
 */
const startsInTurn = 4;

/**
 * A body may arrive in this many chunks, plus one for each `bytesPerChunk` bytes. Each chunk costs a callback, even if it isn't read, so
 * one-byte chunks would keep the core busy for ten times as long as it takes to send them.
 */
const maxChunks = 1_000;
const bytesPerChunk = 64;

/**
 * The number of bytes of a chunked body that are parsed in one turn of the event loop. More would delay other connections too much, because
 * one read may return ten thousand chunks.
 */
const bytesInTurn = 512;

/**
 * Empty data. It must be part of a real buffer, because the parser treats zero bytes without a memory address as the end of the connection.
 */
const nothing = Buffer.alloc(1).subarray(1);

type Turns = {
  /** Whether a request or its response is in progress. */
  isBusy: boolean;
  /** The turn of the event loop that started the last request. */
  startedIn: number;
  response: ServerResponse | null;
  /** How many more chunks the current body may have. */
  chunksLeft: number;
  /**
   * The waiting data. `start` starts the next request, whose headers have been read; it's null if a part of the current body waits. `rest`
   * is the unparsed data.
   */
  held: { start: (() => void) | null; rest: Buffer[] } | null;
  /** Whether the client has closed its side, but data that it sent before is still waiting. */
  isEndHeld: boolean;
  /** Called when the response has been passed to the system, or if the connection breaks. */
  end(): void;
  observer: TurnObserver;
};

const turnsBySocket = new WeakMap<Socket, Turns>();

export type TurnObserver = { onStart(): void; onEnd(): void; onTooMuchWaiting(): void };

/**
 * Starts a request only when the previous one on the same connection has its response, and reads nothing more until then. Node's server
 * would read and start pipelined requests without limit, so one connection could cause as much work as thousands.
 *
 * The parser stops after the headers of a request that has to wait. By then, the whole body of the request in progress has arrived, so
 * pausing the socket doesn't hold it up. In each turn of the event loop, a few waiting requests start, one connection after the other.
 *
 * @param maxHeldBytes the limit for all waiting data. Without it, connections from many networks could fill the memory
 */
export function takeTurns(server: Server, getObserver: (socket: Socket) => TurnObserver, maxHeldBytes: number): void {
  let heldBytes = 0;
  const holding = new Set<Socket>();
  /** The connections whose next request may start. */
  const ready = new Set<ParsedSocket>();
  let isStarting = false;
  let turn = 0;
  let isTurnMarked = false;

  function watch(socket: ParsedSocket): void {
    const { parser } = socket;
    if (!parser) return;
    const observer = getObserver(socket);
    const startSoon = () => {
      ready.add(socket);
      queueStart();
    };
    const end = () => {
      turns.isBusy = false;
      turns.response = null;
      observer.onEnd();
      if (turns.held) startSoon();
    };
    const turns: Turns = {
      isBusy: false,
      startedIn: -1,
      response: null,
      chunksLeft: maxChunks,
      held: null,
      isEndHeld: false,
      end,
      observer,
    };
    turnsBySocket.set(socket, turns);
    countChunks(parser);
    const { onIncoming } = parser;
    parser.onIncoming = (request, keepAlive) => {
      // Check the turn, too. A response may be complete before the parser has reached the end of the data that was read. Without this
      // check, all requests in that data could start in one turn.
      if (!turns.isBusy && turns.startedIn !== turn && (request.upgrade || !isChunked(request))) {
        markStart(turns);
        return onIncoming(request, keepAlive);
      }
      // Node handles CONNECT out of order; `answerConnect` handles it in order.
      if (request.method === 'CONNECT') return onIncoming(request, keepAlive);
      // The parser can't be paused here. Clients don't switch protocols while a request is waiting for its response.
      if (request.upgrade) return upgrades;
      turns.held = { start: () => void onIncoming(request, keepAlive), rest: [] };
      if (!turns.isBusy) startSoon();
      stopReading(socket);
      return pauses;
    };
    // Node resumes the socket when a body has been read to its end. Stop it again if the next request has to wait.
    socket.on('resume', () => {
      if (turns.held) stopReading(socket);
    });
    // Hold back the end of the data, too. With TLS, it arrives even if the socket is paused, and Node would then close the connection after
    // the response in progress.
    const push = socket.push.bind(socket);
    socket.push = (chunk: unknown, encoding) => {
      turns.isEndHeld = chunk === null && turns.held !== null;
      return turns.isEndHeld ? false : push(chunk, encoding);
    };
    // A client may close its side of the connection after its last request. If that request may have changed something, the client gets
    // its response (see listener.ts). A client that was only reading has most likely gone, so stop working for it.
    socket.on('end', () => {
      if (['GET', 'HEAD'].includes(turns.response?.req.method ?? '')) socket.end();
    });
    socket.once('close', () => {
      drop(socket, turns);
      ready.delete(socket);
    });
  }

  function hold(socket: Socket, turns: Turns, ...bytes: Buffer[]): void {
    turns.held?.rest.push(...bytes);
    heldBytes += totalSize(bytes);
    holding.add(socket);
    // Stop reading again, because with TLS, one read may return several pieces.
    stopReading(socket);
    if (heldBytes > maxHeldBytes) cutLargest();
  }

  /** Cuts off the connection with the most waiting data, because the newest one may have only a small request. */
  function cutLargest(): void {
    const sizes = Array.from(holding, (socket) => ({ socket, size: totalSize(turnsBySocket.get(socket)?.held?.rest ?? []) }));
    const { socket } = sizes.reduce((a, b) => (b.size > a.size ? b : a));
    const turns = turnsBySocket.get(socket);
    if (!turns) return;
    turns.observer.onTooMuchWaiting();
    socket.destroy();
    drop(socket, turns);
  }

  function drop(socket: Socket, turns: Turns): void {
    const { held } = turns;
    turns.held = null;
    holding.delete(socket);
    heldBytes -= totalSize(held?.rest ?? []);
  }

  function markStart(turns: Turns): void {
    turns.isBusy = true;
    turns.startedIn = turn;
    turns.chunksLeft = maxChunks;
    turns.observer.onStart();
    if (isTurnMarked) return;
    isTurnMarked = true;
    setImmediate(() => {
      turn++;
      isTurnMarked = false;
    });
  }

  function queueStart(): void {
    if (isStarting || ready.size === 0) return;
    isStarting = true;
    setImmediate(startWaiting);
  }

  function startWaiting(): void {
    isStarting = false;
    // Iterate over a copy, because a connection with more of its body is added again, for the next turn.
    for (const socket of [...ready.values().take(startsInTurn)]) {
      ready.delete(socket);
      startNext(socket);
    }
    queueStart();
  }

  function startNext(socket: ParsedSocket): void {
    const { parser } = socket;
    const turns = turnsBySocket.get(socket);
    if (!turns?.held || !parser || !socket.writable) return;
    const { start, rest } = turns.held;
    drop(socket, turns);
    if (start) {
      markStart(turns);
      start();
    }
    parser.resume();
    const bytes = rest.length === 1 ? (rest[0] ?? nothing) : Buffer.concat(rest);
    const end = isInChunkedBody(parser) ? bytesInTurn : bytes.length;
    // Emit the data even if it's empty, because the parser has to reach the end of the request. The next request in the data waits again.
    socket.emit('data', bytes.length === 0 ? nothing : bytes.subarray(0, end));
    const more = bytes.subarray(end);
    if (turns.held) hold(socket, turns, ...(more.length > 0 ? [more] : []));
    else if (more.length > 0) holdBody(socket, turns, more);
    else continueBody(socket, parser);
    if (turns.isEndHeld && !turns.held) socket.push(null);
  }

  function holdBody(socket: ParsedSocket, turns: Turns, bytes: Buffer): void {
    turns.held = { start: null, rest: [] };
    hold(socket, turns, bytes);
    ready.add(socket);
    queueStart();
  }

  /** Continues a held body. The rest of a chunked body is held as it arrives, and parsed in turns. */
  function continueBody(socket: Socket, parser: Parser): void {
    if (!isInChunkedBody(parser)) return void socket.resume();
    parser.pause();
    // If the request's buffer is full, the socket resumes reading when the request is read.
    if (parser.incoming && parser.incoming.readableLength < parser.incoming.readableHighWaterMark) socket.resume();
  }

  server.on('connection', watch).on('secureConnection', watch);
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const turns = turnsBySocket.get(socket);
    if (!turns) return;
    turns.response = response;
    response.on('close', turns.end);
  });
  server.on('clientError', (error: ClientError, socket: Socket) => {
    const turns = turnsBySocket.get(socket);
    if (error.code === 'HPE_PAUSED' && turns && error.rawPacket) {
      const isFirst = turns.held?.start && turns.held.rest.length === 0;
      if (turns.held) hold(socket, turns, isFirst ? error.rawPacket.subarray(error.bytesParsed) : error.rawPacket);
      else holdBody(socket, turns, error.rawPacket);
    } else if (turns?.response?.req.complete && !socket.destroyed) {
      // The request in progress will be executed, so its client must get the response first.
      turns.held ??= { start: null, rest: [] };
      stopReading(socket);
      turns.response.once('close', () => answerClientError(error, socket, null));
    } else answerClientError(error, socket, turns?.response ?? null);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    const earlier = turnsBySocket.get(socket)?.response;
    if (!earlier) return answerConnect(server, request, socket);
    earlier.once('close', () => answerConnect(server, request, socket));
    // Forward this event, because Node no longer does, and without it, a long response would never be written completely.
    socket.on('drain', () => earlier.emit('drain'));
  });
}

/**
 * Ends the connection if a body has too many chunks. The parser can't be stopped in the middle of the data that was read, but it can be
 * kept from copying the rest chunk by chunk, which for 300 connections took seconds and 100 MB.
 */
function countChunks(parser: Parser): void {
  const onBody = parser[3];
  if (onBody === null || counting.has(onBody)) return;
  const count: OnBody = function (piece) {
    const turns = turnsBySocket.get(this.socket);
    if (turns) {
      turns.chunksLeft -= 1 - piece.length / bytesPerChunk;
      if (turns.chunksLeft < 0) {
        this[3] = null;
        // Restore the callback before the parser is reused for another connection, which can happen once this one has closed.
        setImmediate(() => {
          this[3] = count;
        });
        return answerClientError(new Error('too many body chunks'), this.socket, turns.response);
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

/** Returns the memory that buffers occupy, including all of the larger buffers that they may be parts of. */
function totalSize(bytes: readonly Buffer[]): number {
  return bytes.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
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
