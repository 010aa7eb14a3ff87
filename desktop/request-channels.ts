import { z } from 'zod';
import { type SessionView, secondFactorNeededSchema, sessionSchema } from '#contract/console/session.ts';
import { findKeyValues } from '#contract/key-value.ts';
import type { Route } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes.ts';
import { coreRequest, failed, type Send } from './core-requests.ts';
import type { Channels, Result, SignIn, SignInAnswer } from './ipc.ts';

const subjectSchema = z.union([
  z.object({ apiKey: z.object({ id: z.string(), name: z.string() }) }).transform(({ apiKey }) => ({ kind: 'key' as const, ...apiKey })),
  z.object({ user: z.object({ id: z.string(), name: z.string() }) }).transform(({ user }) => ({ kind: 'user' as const, ...user })),
]);
/** A new key or user, whose secret can't be shown again. */
export type SecretSubject = z.infer<typeof subjectSchema>;

/** Protects a secret while it's visible. */
type SecretGuard = {
  /** Called before a secret is requested. */
  begin(): void;
  /** @param subject whose secret it is, if the response says so */
  show(secret: string, subject: SecretSubject | null): void;
  /** Called when the secret is no longer visible, or never arrived. */
  end(): Promise<void>;
};

type RequestDeps = {
  send: Send;
  guard: SecretGuard;
  /** @returns null if the page can't hash */
  sha256(text: string): Promise<string | null>;
};

/** How long to keep retrying a sign-in, in ms. A busy core gives priority to clients that retry. */
const signInPatience = 10_000;

const signInAnswer = z.union([sessionSchema, secondFactorNeededSchema]);

export function isSession(answer: SignInAnswer): answer is SessionView {
  return 'viewer' in answer;
}

export async function signInAt(send: Send, { email, password }: SignIn): Promise<Result<SignInAnswer>> {
  const start = performance.now();
  const attempt = () => send({ ...coreRequest('signIn', { email, password }), schema: signInAnswer });
  let answer = await attempt();
  for (let wait = retryDelay(answer); wait > 0 && performance.now() - start + wait < signInPatience; wait = retryDelay(answer)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    answer = await attempt();
  }
  const isWrong = !answer.ok && answer.failure.kind === 'session-ended';
  return isWrong ? refused('password', 'Incorrect email address or password.') : answer;
}

export async function enterCodeAt(send: Send, code: string): Promise<Result<SessionView>> {
  const answer = await send(coreRequest('enterCode', { code }));
  const isWrong = !answer.ok && answer.failure.kind === 'session-ended';
  return isWrong ? refused('code', `${wrongCode} If you started more than ten minutes ago, go back and start again.`) : answer;
}

const wrongCode = 'This code isn’t valid or has already been used. Enter the current code from your app, or another recovery code.';

/** Returns how long to wait before retrying a throttled sign-in, in ms; 0 if it wasn't throttled. */
function retryDelay(answer: Result<unknown>): number {
  if (answer.ok || answer.failure.kind !== 'refused' || answer.failure.code !== 'too-many-requests') return 0;
  return (answer.failure.retryAfterSeconds ?? 0) * 1_000;
}

/** Implements the channels that send requests to the core, for both the main process and a browser. */
export function requestChannels({ send, guard, sha256 }: RequestDeps): Pick<Channels, 'request' | 'dismissSecret' | 'identifyApiKey'> {
  /** Whether a secret is already visible. */
  let isGuarding = false;

  /** The core's 401 doesn't say whether the session has ended or only the code is wrong. */
  async function explainWrongCode<Value>(input: object, result: Result<Value>): Promise<Result<Value>> {
    if (result.ok || result.failure.kind !== 'session-ended' || !('code' in input) || input.code === undefined) return result;
    const session = await send(coreRequest('showSession', {}));
    return session.ok ? refused('code', wrongCode) : result;
  }

  return {
    async request(name, input) {
      const { secret }: Route = consoleRoutes[name];
      if (secret !== undefined) guard.begin();
      const result = await explainWrongCode(input, await send(coreRequest(name, input)));
      if (secret === undefined) return result;
      const shown: unknown = result.ok ? Object(result.value)[secret] : null;
      if (typeof shown === 'string' || Array.isArray(shown)) {
        isGuarding = true;
        guard.show([shown].flat().join('\n'), subjectSchema.safeParse(result.ok ? result.value : null).data ?? null);
      } else if (!isGuarding) await guard.end();
      return result;
    },
    dismissSecret() {
      isGuarding = false;
      return guard.end();
    },
    async identifyApiKey(pasted) {
      // Find the key in the text, because users paste whole lines, such as the ones that the console offers to copy.
      const [keyValue, other] = findKeyValues(pasted);
      if (keyValue === undefined) {
        return refused(
          'keyValue',
          'This isn’t a key value. A key value starts with svc_sk_live_ and is 61 characters long. Paste the whole value.',
        );
      }
      if (other !== undefined) return refused('keyValue', 'This contains several key values. Paste one at a time.');
      const digest = await sha256(keyValue);
      if (digest === null)
        return refused('keyValue', 'Your browser allows this only over HTTPS. Open the console at an https address and try again.');
      const answer = await send(coreRequest('identifyApiKey', { sha256: digest }));
      return answer.ok ? { ok: true, value: answer.value.apiKey } : answer;
    },
  };
}

export function refused(path: string, message: string): Result<never> {
  return failed({ kind: 'refused', code: 'invalid', detail: message, errors: [{ path, message }], retryAfterSeconds: null });
}
