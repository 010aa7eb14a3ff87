import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** After seeing this once, browsers use only https for a year (RFC 6797), even if their user types http or follows such a link. */
const header = ['Strict-Transport-Security', 'max-age=31536000'] as const;

/** A response over TLS. All responses have the header, so that it doesn't distinguish them. */
export class SecureResponse extends ServerResponse {
  override writeHead(status: number, headers?: Headers): this;
  override writeHead(status: number, message?: string, headers?: Headers): this;
  override writeHead(status: number, ...rest: [first?: string | Headers, second?: Headers]): this {
    const given = rest.pop();
    // Setting the header would make Node write headers on a slower path.
    if (Array.isArray(given)) return super.writeHead(status, [...given, ...header]);
    this.setHeader(...header);
    return typeof given === 'object' ? super.writeHead(status, given) : super.writeHead(status);
  }
}
