import { sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { sessionRoutes } from '#contract/routes/sessions.ts';
import type { Result } from './ipc.ts';
import type { CoreRequest, Send } from './route-requests.ts';

type Headers = Readonly<Record<string, string>>;
type SendWith = <Value>(request: CoreRequest<Value>, headers: Headers) => Promise<Result<Value>>;
/** @property headers for a request that isn't sent through `send` */
type InTenancy = { send: Send; headers: () => Headers };

/**
 * With each request, sends the account or partner that the page shows. Another tab can select a different one in the same session, but this
 * page must not read or change anything there. The page shows the tenancy from the latest response about the session.
 */
export function withTenancyHeader(send: SendWith): InTenancy {
  let headers: Headers = {};
  const sendIn: Send = async (request) => {
    const isShown = request.path === sessionRoutes.showSession.path && request.method === 'GET';
    const isAboutSession = request.path === sessionRoutes.showSession.path || request.path === sessionRoutes.selectTenancy.path;
    let result = await send(request, isAboutSession && !isShown ? {} : headers);
    // Someone else may have signed in, or the account may be gone. Ask again without the header to get the session's own selection.
    if (isShown && !result.ok && result.failure.kind === 'refused') result = await send(request, {});
    if (isAboutSession && result.ok) {
      const tenancy = sessionSchema.safeParse(result.value).data?.tenancy;
      headers = tenancy ? { [tenancyHeader]: `${tenancy.kind}/${tenancy.id}` } : {};
    }
    return result;
  };
  return { send: sendIn, headers: () => headers };
}
