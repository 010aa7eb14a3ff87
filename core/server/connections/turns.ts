import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { SecureResponse } from './secure-response.ts';

/**
 * What Node's parser has for its server. Node doesn't document it, and has no switch for what is done with it here: tests of
 * `test/http/connections.test.ts` fail if a later Node.js changes it.
 */
type Parser = {
  onIncoming: (request: ParsedRequest, keepAlive: boolean) => number;
  /** `kOnBody`. Set once: parsers go from one connection to the next. Without it, the parser drops the pieces of a body. */
  3: OnBody | null;
  socket: Socket;
  resume(): void;
};
type OnBody = (this: Parser, piece: Buffer) => void;
type ParsedSocket = Socket & { parser?: Parser | null };
type ParsedRequest = IncomingMessage & { upgrade?: boolean };

/** Tells the parser to stop after the headers that it has just read (`HPE_PAUSED`), or to take what follows for another protocol. */
const pauses = 21;
const upgrades = 2;

/** Of all connections. Clients that don't pipeline come first: whatever else the turn brings is not held up by more than these. */
const startsInTurn = 4;

/** The bytes of all waiting requests together. Without the bound, connections from many networks could fill the memory with them. */
const mostHeldBytes = 32 * 1024 * 1024;

/**
 * How many pieces a body may come in, beside one for so many of its bytes. Each costs a callback, read or not: chunks of one byte would keep
 * the core busy for ten times as long as it takes to send them.
 */
const mostPieces = 1_000;
const bytesOfPiece = 64;

/** Without an address, the parser would take no bytes for the end of the connection. */
const nothing = Buffer.alloc(1).subarray(1);

type Turns = {
  /** A request, or its answer, is under way. */
  isBusy: boolean;
  /** The turn of the event loop in which its last request was started. */
  startedIn: number;
  response: ServerResponse | null;
  /** What the body under way may still come in. */
  piecesLeft: number;
  /** The next request, of which the headers are read, and what the client has sent after them. */
  held: { start(): void; rest: Buffer[] } | null;
  /** The answer is with the system, or the connection broken. */
  end(): void;
  observer: TurnObserver;
};

const turnsOf = new WeakMap<Socket, Turns>();

export type TurnObserver = { onStart(): void; onEnd(): void; onTooMuchWaiting(): void };

/**
 * Starts a request only when the one before it on the same connection is answered, and reads nothing more until then. Node's server would
 * read and start pipelined requests without bound: one connection of a stranger would have the strength of thousands.
 *
 * The parser stops at the headers of a request that has to wait. Only then has the one under way its whole body, so pausing the socket
 * can't keep it from its client. Waiting requests start a few in each turn of the event loop, one connection after the other.
 */
export function takeTurns(server: Server, observerOf: (socket: Socket) => TurnObserver): void {
  let heldBytes = 0;
  /** Those whose next request may start. */
  const ready = new Set<ParsedSocket>();
  let isStarting = false;
  let turn = 0;
  let isTurnMarked = false;

  function watch(socket: ParsedSocket): void {
    const { parser } = socket;
    if (!parser) return;
    const observer = observerOf(socket);
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
    const turns: Turns = { isBusy: false, startedIn: -1, response: null, piecesLeft: mostPieces, held: null, end, observer };
    turnsOf.set(socket, turns);
    countPieces(parser);
    const { onIncoming } = parser;
    parser.onIncoming = (request, keepAlive) => {
      // An answer may be whole before the parser has come to the end of what one read has brought.
      if (!turns.isBusy && turns.startedIn !== turn) {
        markStart(turns);
        return onIncoming(request, keepAlive);
      }
      // Node keeps no order for CONNECT: `answerConnect` does.
      if (request.method === 'CONNECT') return onIncoming(request, keepAlive);
      // The parser can't be paused here. No client asks for another protocol behind a request that isn't answered.
      if (request.upgrade) return upgrades;
      turns.held = { start: () => void onIncoming(request, keepAlive), rest: [] };
      if (!turns.isBusy) startSoon();
      stopReading(socket);
      return pauses;
    };
    // What reads a body to its end makes the socket read on.
    socket.on('resume', () => {
      if (turns.held) stopReading(socket);
    });
    socket.once('close', () => {
      drop(turns);
      ready.delete(socket);
    });
  }

  function hold(socket: Socket, turns: Turns, bytes: Buffer): void {
    turns.held?.rest.push(bytes);
    heldBytes += bytes.buffer.byteLength;
    // With TLS, one read may have several pieces.
    stopReading(socket);
    if (heldBytes <= mostHeldBytes) return;
    turns.observer.onTooMuchWaiting();
    socket.destroy();
    drop(turns);
  }

  function drop(turns: Turns): void {
    const { held } = turns;
    turns.held = null;
    for (const bytes of held?.rest ?? []) heldBytes -= bytes.buffer.byteLength;
  }

  function markStart(turns: Turns): void {
    turns.isBusy = true;
    turns.startedIn = turn;
    turns.piecesLeft = mostPieces;
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
    setImmediate(startSome);
  }

  function startSome(): void {
    isStarting = false;
    for (const socket of ready.values().take(startsInTurn)) {
      ready.delete(socket);
      startNext(socket);
    }
    queueStart();
  }

  function startNext(socket: ParsedSocket): void {
    const { parser } = socket;
    const turns = turnsOf.get(socket);
    if (!turns?.held || !parser || !socket.writable) return;
    const { start, rest } = turns.held;
    drop(turns);
    markStart(turns);
    start();
    parser.resume();
    const [first = nothing, ...more] = rest;
    // As from the connection, and even if it's nothing: the parser has to come to the end of the request. The next one in it waits again.
    socket.emit('data', more.length === 0 ? first : Buffer.concat(rest));
    if (!turns.held) socket.resume();
  }

  server.on('connection', watch).on('secureConnection', watch);
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const turns = turnsOf.get(socket);
    if (!turns) return;
    turns.response = response;
    response.on('close', turns.end);
  });
  server.on('clientError', (error: ClientError, socket: Socket) => {
    const turns = turnsOf.get(socket);
    if (error.code === 'HPE_PAUSED' && turns?.held && error.rawPacket) {
      const isFirst = turns.held.rest.length === 0;
      hold(socket, turns, isFirst ? error.rawPacket.subarray(error.bytesParsed) : error.rawPacket);
    } else answerClientError(error, socket, turns?.response ?? null);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    const earlier = turnsOf.get(socket)?.response;
    if (!earlier) return answerConnect(server, request, socket);
    earlier.once('close', () => answerConnect(server, request, socket));
    // Node has stopped passing it on: a long answer would never be written to its end.
    socket.on('drain', () => earlier.emit('drain'));
  });
}

/**
 * At one piece too many, ends the connection. The parser can't be stopped in the middle of what one read has brought, but it can be kept from
 * copying the rest, piece by piece: for 300 connections, that took seconds and 100 MB.
 */
function countPieces(parser: Parser): void {
  const onBody = parser[3];
  if (onBody === null || counting.has(onBody)) return;
  const count: OnBody = function (piece) {
    const turns = turnsOf.get(this.socket);
    if (turns) {
      turns.piecesLeft -= 1 - piece.length / bytesOfPiece;
      if (turns.piecesLeft < 0) {
        this[3] = null;
        // Before the parser goes to another connection, which is when this one has closed.
        setImmediate(() => {
          this[3] = count;
        });
        return answerClientError(new Error('too many pieces'), this.socket, turns.response);
      }
    }
    onBody.call(this, piece);
  };
  counting.add(count);
  parser[3] = count;
}

const counting = new WeakSet<OnBody>();

/** Where the socket is paused already, reading may go on all the same: a `resume` that was under way starts it again. */
function stopReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause');
  else socket.pause();
}

type ClientError = Error & { code?: string; bytesParsed?: number; rawPacket?: Buffer };

const statusLines: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** As Node does where nobody listens for these errors. */
function answerClientError(error: ClientError, socket: Socket, underWay: ServerResponse | null): void {
  if (socket.writable && !underWay?.headersSent) {
    socket.write(`HTTP/1.1 ${statusLines[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy(error);
}

/**
 * Answers CONNECT like every other method, so that nothing tells it apart: Node hands over a bare socket (RFC 9110 §9.3.6), and closes it
 * where nobody listens. It keeps no order for it either, and throws where an earlier request of the connection still has the socket: one
 * packet of a stranger would end the core. Upgrades arrive as ordinary requests while nobody listens for them.
 */
function answerConnect(server: Server, request: IncomingMessage, socket: Socket): void {
  // The earlier answer may have ended the connection.
  if (!socket.writable) return;
  const response = new (server instanceof TlsServer ? SecureResponse : ServerResponse)(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  server.emit('request', request, response);
}
