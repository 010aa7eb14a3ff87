import { Icon } from '../../components/icons.tsx';
import { Empty } from '../../components/loadable.tsx';
import { server } from '../../state/session.ts';
import { ReferenceLink } from './reference-link.tsx';
import { exampleCall } from './snippets.ts';

/** Explains API keys to users who don't have one yet. */
export function FirstKey({ onCreate }: { onCreate: () => void }) {
  return (
    <Empty title="No API keys yet">
      <p>With an API key, your systems can place and cancel calls without anyone signing in. Each call is one request:</p>
      <pre>{exampleCall(server.value, '{campaignId}', 'order-4711')}</pre>
      <p>
        <ReferenceLink verb="lists errors and limits, and has examples in eight languages." />
      </p>
      <button type="button" class="primary" onClick={onCreate}>
        <Icon name="plus" /> Create your first key
      </button>
    </Empty>
  );
}
