import type { Answer } from './core-answers.ts';
import type { CoreRequest } from './route-requests.ts';

type Headers = Readonly<Record<string, string>>;
type Exchange = (request: CoreRequest<unknown>, headers: Headers) => Promise<Answer>;

/** Enough responses for the screens that a user returns to. A list of 500 keys takes 150 KB. */
const max = 30;

/** Sends the last response's ETag with a request, and returns that response again if the core says that it hasn't changed. */
export function withEtags(exchange: Exchange): Exchange {
  const known = new Map<string, Answer>();
  return async (request, headers) => {
    if (request.method !== 'GET') return exchange(request, headers);
    const id = JSON.stringify([request.path, headers]);
    const last = known.get(id);
    const etag = last?.header('etag');
    const answer = await exchange(request, etag === undefined ? headers : { ...headers, 'if-none-match': etag });
    if (last && answer.status === 304) return { ...last, header: (name) => answer.header(name) ?? last.header(name) };
    known.delete(id);
    if (answer.status === 200) known.set(id, answer);
    const [oldest] = known.keys();
    if (known.size > max && oldest !== undefined) known.delete(oldest);
    return answer;
  };
}
