import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Once browsers have seen this, they use only https for a year (RFC 6797), even if someone types http or follows an http link. */
const header = ['Strict-Transport-Security', 'max-age=31536000'] as const;

/** A response over TLS. It always has the header above, so that the header can't be used to distinguish responses. */
export class SecureResponse extends ServerResponse {
  override writeHead(status: number, headers?: Headers): this;
  override writeHead(status: number, message?: string, headers?: Headers): this;
  override writeHead(status: number, ...rest: [first?: string | Headers, second?: Headers]): this {
    const rawHeaders = rest.pop();
    // Setting the header would make Node write headers on a slower path.
    if (Array.isArray(rawHeaders)) return super.writeHead(status, [...rawHeaders, ...header]);
    this.setHeader(...header);
    return typeof rawHeaders === 'object' ? super.writeHead(status, rawHeaders) : super.writeHead(status);
  }
}
