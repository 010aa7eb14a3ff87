import { referenceUrl } from '../../../server-address.ts';
import { server } from '../../state/session.ts';

/** Links to the server's page for integrators. It opens in the browser. */
export function ReferenceLink() {
  return (
    <a href={referenceUrl(server.value)} target="_blank" rel="noreferrer">
      The API reference
    </a>
  );
}
