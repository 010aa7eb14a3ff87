import { useState } from 'preact/hooks';
import type { ActivityView } from '#contract/console.ts';
import type { Result } from '../../ipc.ts';
import { Empty, Loadable, useResource } from '../components/loadable.tsx';
import { Time } from '../components/time.tsx';
import { describeFailure } from '../state/failure-text.ts';
import { actionLabel } from '../state/labels.ts';
import type { ScreenProps } from '../state/navigation.ts';
import type { Resource } from '../state/resource.ts';
import { handleSessionFailure } from '../state/session.ts';

export function Activity({ session, title }: ScreenProps) {
  const resource = useResource<ActivityView>(() => window.callkey.listActivity(null));
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <Loadable resource={resource} what="the activity">
        {(view) =>
          view.events.length === 0 ? (
            <Empty title="No activity yet">
              <p>This list will show who created, revoked or deleted keys and users, when, and from which address.</p>
            </Empty>
          ) : (
            <>
              <Events view={view} viewerId={session.viewer.id} />
              {view.nextCursor !== null && <Older cursor={view.nextCursor} resource={resource} view={view} />}
            </>
          )
        }
      </Loadable>
    </>
  );
}

function Events({ view, viewerId }: { view: ActivityView; viewerId: string }) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">From</th>
          </tr>
        </thead>
        <tbody>
          {view.events.map(({ id, at, actor, action, subject, address }) => (
            <tr key={id}>
              <td>
                <Time at={at} />
              </td>
              <td>{actor ? actor.id === viewerId ? <span class="tag you">You</span> : actor.name : 'The operator'}</td>
              <td>
                {actionLabel(action)} {isSelf(action) ? '' : <strong>{subject.name}</strong>}
              </td>
              <td class="faint">{address === 'local' ? 'the server itself' : address}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isSelf(action: string): boolean {
  return action === 'session.started' || action === 'session.ended';
}

function Older({ cursor, resource, view }: { cursor: string; resource: Resource<ActivityView>; view: ActivityView }) {
  const [problem, setProblem] = useState<string | null>(null);
  async function load(): Promise<void> {
    const result: Result<ActivityView> = await handleSessionFailure(window.callkey.listActivity(cursor));
    setProblem(result.ok ? null : describeFailure(result.failure));
    if (result.ok) resource.change({ events: [...view.events, ...result.value.events], nextCursor: result.value.nextCursor });
  }
  return (
    <div class="pager">
      <p role="status">{problem}</p>
      <button type="button" onClick={() => void load()}>
        Show older activity
      </button>
    </div>
  );
}
