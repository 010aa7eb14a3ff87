import { sessionSchema, tenancyHeader } from '#contract/console.ts';
import { sessionRoutes } from '#contract/routes/sessions.ts';
import type { CoreRequest, Send } from './core-channels.ts';
import type { Result } from './ipc.ts';

type Headers = Readonly<Record<string, string>>;
type SendWith = <Value>(request: CoreRequest<Value>, headers: Headers) => Promise<Result<Value>>;

/**
 * Says with each request which account or partner the page shows: another tab may select another one in the same session, and what is done
 * on this page must not happen there. The page shows what the last answer about the session said.
 */
export function inTenancyOfPage(send: SendWith): Send {
  let headers: Headers = {};
  return async (request) => {
    const isAboutSession = request.path === sessionRoutes.showSession.path || request.path === sessionRoutes.selectTenancy.path;
    const result = await send(request, isAboutSession ? {} : headers);
    if (isAboutSession && result.ok) {
      const tenancy = sessionSchema.safeParse(result.value).data?.tenancy;
      headers = tenancy ? { [tenancyHeader]: `${tenancy.kind}/${tenancy.id}` } : {};
    }
    return result;
  };
}
