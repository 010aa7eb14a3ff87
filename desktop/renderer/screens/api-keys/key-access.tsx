import type { ApiKeyDetailsView } from '#contract/console/api-keys.ts';
import { useResource } from '../../components/loadable.tsx';
import { Clip } from '../../components/table/clip.tsx';
import { ownZone } from '../../state/clock.ts';

/** Shows what a key has access to, on its own line. While that's loading, the line has the same height. */
export function KeyAccess({ id, subject = 'It' }: { id: string; subject?: string }) {
  const resource = useResource(() => window.callkey.request('showApiKey', { id, timeZone: ownZone.peek() }), id);
  const view = resource.state.value.value;
  return (
    <p aria-busy={view === null}>
      <Clip>
        {subject} has access to {view ? <AccessScope reach={view.reach} /> : '…'}.
      </Clip>
    </p>
  );
}

type AccessScopeProps = { reach: ApiKeyDetailsView['reach']; isSentence?: boolean };

export function AccessScope({ reach: { kind, name }, isSentence = false }: AccessScopeProps) {
  return (
    <>
      {isSentence ? 'All' : 'all'} campaigns in {kind === 'partner' && 'all accounts under '}
      <bdi>{name}</bdi>
    </>
  );
}
