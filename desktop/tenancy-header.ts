import { tenancyHeader } from '#contract/console/session.ts';
import type { ProblemCode } from '#contract/problems.ts';
import { sessionRoutes } from '#contract/routes/sessions.ts';
import type { RequestInput, Result } from './ipc.ts';
import type { CoreRequest, Send } from './route-requests.ts';

type Headers = Readonly<Record<string, string>>;
type SendWith = <Value>(request: CoreRequest<Value>, headers: Headers) => Promise<Result<Value>>;
/** @property headers for a request that isn't sent through `send` */
type InTenancy = { send: Send; headers: () => Headers; setTenancy: (shown: RequestInput<'selectTenancy'>) => void };

/** The core's responses if the tenancy in the header is gone, or isn't one of the user's. Others, such as a 503, say nothing about it. */
const noAccess: readonly ProblemCode[] = ['forbidden', 'not-found', 'malformed-request'];

/**
 * With each request, sends the account or partner that the page shows. Another tab can select a different one in the same session, but this
 * page must not read or change anything there. Only the page says what it shows: responses may arrive late, or the page may ignore them.
 */
export function withTenancyHeader(send: SendWith): InTenancy {
  let headers: Headers = {};
  const { showSession, selectTenancy } = sessionRoutes;
  const sendIn: Send = async (request) => {
    const isAboutSession = request.path === showSession.path || request.path === selectTenancy.path;
    const isShown = isAboutSession && request.method === 'GET';
    const sent = isAboutSession && !isShown ? {} : headers;
    const result = await send(request, sent);
    if (!isShown) return result;
    // The response is about a tenancy that the page no longer shows.
    if (sent !== headers) return sendIn(request);
    // Someone else may have signed in, or the account may be gone. Ask again without the header to get the session's own selection.
    return !result.ok && result.failure.kind === 'refused' && noAccess.includes(result.failure.code) ? send(request, {}) : result;
  };
  return {
    send: sendIn,
    headers: () => headers,
    setTenancy(shown) {
      headers = shown.kind === null ? {} : { [tenancyHeader]: `${shown.kind}/${shown.id}` };
    },
  };
}
