import { referenceUrl } from '../../../server-address.ts';
import { server, session } from '../../state/session.ts';

/**
 * Shows a sentence about the server's page for integrators, with a link that opens in the browser. Shows nothing if the server doesn't have
 * that page.
 */
export function ReferenceLink({ verb }: { verb: string }) {
  if (session.value?.reference === false) return null;
  return (
    <>
      <a href={referenceUrl(server.value)} target="_blank" rel="noreferrer">
        The API reference
      </a>{' '}
      {verb}
    </>
  );
}
