import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type { StoppedDialingView, StopsView, StopView } from '#contract/protection/dialing.ts';
import { counted } from '#contract/text/count.ts';
import type { Result } from '../../ipc.ts';
import { describeFailure, isNotFound, type LookedUp, lookUpChange, lookUpGone } from '../state/failure-text.ts';
import { capitalized } from '../state/labels.ts';
import type { List } from '../state/list.ts';
import { describePlace, describeWaiting, ownTenancy, type Tenancy, type Waiting } from '../state/protection.ts';
import { session } from '../state/session.ts';
import { ChooseTenancy } from './choose.tsx';
import { Facts } from './details.tsx';
import { CloseAction, Dialog } from './dialog.tsx';
import { FormDialog, TextField } from './form.tsx';
import { useDialogs, useList } from './list.tsx';
import { Time } from './time.tsx';

/** What is stopped. The shell loads it for all screens. */
export const Stops = createContext<List<StopsView> | null>(null);

type StopsDialog = { name: 'all' } | { name: 'resume'; stop: StopView };

/** More banners than these would leave no room for the screen. */
const maxBanners = 2;

/** Says on every screen what is stopped, by whom and why, and lets those who may resume it. */
export function StopBanners() {
  const list = useContext(Stops);
  return list && <Banners list={list} />;
}

function Banners({ list }: { list: List<StopsView> }) {
  const { dialog, open, close, done } = useDialogs<StopsDialog>(list);
  const stops = list.state.value.view?.stops ?? [];
  const onResume = (stop: StopView) => open({ name: 'resume', stop });
  return (
    <>
      <div role="status" class="stops stack-close">
        {stops.length > maxBanners ? (
          <div class="box banner">
            <p>
              <strong>Dialing is stopped in {stops.length} places.</strong>
            </p>
            <button type="button" onClick={() => open({ name: 'all' })}>
              Show stops…
            </button>
          </div>
        ) : (
          stops.map((stop) => <StopBanner key={stop.id} stop={stop} onResume={onResume} />)
        )}
      </div>
      {dialog?.name === 'all' && (
        <Dialog title="Stopped dialing" isWide onDismiss={close}>
          {stops.map((stop) => (
            <StopBanner key={stop.id} stop={stop} onResume={onResume} />
          ))}
          <CloseAction onClose={close} />
        </Dialog>
      )}
      {dialog?.name === 'resume' && <Resume stop={dialog.stop} onResumed={(text) => void done(text)} onClose={close} />}
    </>
  );
}

function StopBanner({ stop, onResume }: { stop: StopView; onResume: (stop: StopView) => void }) {
  const { by, at, reason } = stop;
  const viewer = session.value?.viewer;
  return (
    <div class="box banner">
      <p>
        <strong>
          Dialing is stopped for <bdi>{describePlace(stop)}</bdi>
        </strong>{' '}
        by {by === null ? 'the operator' : by.id === viewer?.id ? 'you' : <bdi>{by.name}</bdi>}, <Time at={at} />
        {reason === null ? (
          '.'
        ) : (
          <>
            : <bdi>{reason}</bdi>
          </>
        )}
      </p>
      {stop.mayResume && (
        <button type="button" onClick={() => onResume(stop)}>
          Resume…
        </button>
      )}
    </div>
  );
}

function Resume({ stop, onResumed, onClose }: { stop: StopView; onResumed: (text: string) => void; onClose: () => void }) {
  const hasOthers = (useContext(Stops)?.state.value.view?.stops.length ?? 0) > 1;
  const load = () => countWaiting(stop, hasOthers);
  const preview = useList<{ waiting: Waiting }>({ key: `resume/${stop.id}`, every: null, load });
  const { view, failure } = preview.state.value;
  async function resume(): Promise<Result<unknown>> {
    const result = await window.callkey.request('resumeDialing', { id: stop.id });
    // Someone else has resumed it.
    return !result.ok && isNotFound(result.failure) ? { ok: true, value: null } : result;
  }
  return (
    <FormDialog
      title="Resume dialing?"
      lead={
        <>
          For <bdi>{describePlace(stop)}</bdi>.
        </>
      }
      isAlert
      isDanger
      isReady={view !== null || failure !== null}
      verb="Resume"
      verbing="Resuming…"
      act={resume}
      lookUp={() => lookUpGone(window.callkey.request('showStop', { id: stop.id }))}
      onDone={() => onResumed(`Dialing is resumed for ${describePlace(stop)}.`)}
      onClose={onClose}
    >
      <p role="status">
        {view ? describeWaiting(view.waiting) : failure ? describeFailure(failure) : 'Counting the calls that are waiting…'}
      </p>
    </FormDialog>
  );
}

async function countWaiting({ id }: StopView, hasOthers: boolean): Promise<Result<{ waiting: Waiting }>> {
  const shown = await window.callkey.request('showStop', { id });
  if (!shown.ok) return isNotFound(shown.failure) ? { ok: true, value: { waiting: null } } : shown;
  const { stop, queuedCalls } = shown.value;
  const { scope, target } = stop;
  const isPaced = scope === 'account' || scope === 'campaign';
  const pace = isPaced && target ? await window.callkey.request('showPace', { scope, id: target.id }) : null;
  return { ok: true, value: { waiting: { queuedCalls, pace: pace?.ok ? pace.value : null, hasOthers } } };
}

/** What is to be stopped: null for the whole server. */
type StopPlace = Tenancy | null;

const wholeServer = capitalized(describePlace({ scope: 'server', target: null }));

function requestStop(place: StopPlace, more: { reason?: string | null; cancelQueuedCalls?: boolean }) {
  return window.callkey.request('stopDialing', place ? { scope: place.kind, id: place.id, ...more } : { scope: 'server', ...more });
}

/** @param shown what the screen shows, which is offered first; null for the viewer's own tenancy */
export function StopButton({ shown }: { shown: Tenancy | null }) {
  const [isOpen, setOpen] = useState(false);
  const [stopped, setStopped] = useState<{ place: StopPlace; counts: StoppedDialingView } | null>(null);
  const close = () => {
    setOpen(false);
    setStopped(null);
  };
  return (
    <>
      <button type="button" class="stop" onClick={() => setOpen(true)}>
        Stop dialing…
      </button>
      {isOpen && !stopped && <StopDialing shown={shown} onStopped={(place, counts) => setStopped({ place, counts })} onClose={close} />}
      {stopped && (
        <Stopped
          key={stopped.counts.queuedCalls}
          {...stopped}
          onCancelled={(counts) => setStopped({ ...stopped, counts })}
          onClose={close}
        />
      )}
    </>
  );
}

async function lookUpStop(place: StopPlace): Promise<LookedUp<StoppedDialingView>> {
  const listed = await window.callkey.request('listStops', {});
  if (!listed.ok) return listed;
  const stop = listed.value.stops.find(({ scope, target }) => scope === (place?.kind ?? 'server') && target?.id === place?.id);
  return stop ? lookUpChange(window.callkey.request('showStop', { id: stop.id }), () => true) : { ok: true, value: null };
}

type StopDialingProps = {
  shown: Tenancy | null;
  onStopped: (place: StopPlace, counts: StoppedDialingView) => void;
  onClose: () => void;
};

function StopDialing({ shown, onStopped, onClose }: StopDialingProps) {
  const list = useContext(Stops);
  const current = session.value;
  const own = current && ownTenancy(current);
  const [chosen, choose] = useState<StopPlace>(shown ?? own);
  // After a reload, the screen learns the name only once its rules have loaded.
  const place = chosen && shown?.id === chosen.id ? shown : chosen;
  const [reason, setReason] = useState('');
  const [cancelQueuedCalls, setCancel] = useState(false);
  return (
    <FormDialog
      title="Stop dialing?"
      lead="Once dialing is stopped, no call leaves until someone resumes it. Your systems can still place calls, which then wait. Stopping can take ten seconds."
      verb="Stop dialing"
      verbing="Stopping…"
      lookUp={() => lookUpStop(place)}
      act={() => requestStop(place, { reason: reason.trim() === '' ? null : reason, cancelQueuedCalls })}
      onDone={(counts) => {
        onStopped(place, counts);
        void list?.refresh();
      }}
      onClose={onClose}
    >
      {own ? (
        <div class="field">
          <span class="label">What to stop</span>
          <ChooseTenancy
            title="Choose what to stop"
            own={own}
            kinds={['account', 'campaign']}
            chosen={place}
            other={current.viewer.userType === 'staff' ? { label: wholeServer, onChoose: () => choose(null) } : undefined}
            onChoose={choose}
          />
        </div>
      ) : (
        <p>{wholeServer}</p>
      )}
      <TextField
        name="reason"
        label="Reason (optional)"
        hint="Shown to everyone whose calls are stopped."
        value={reason}
        onInput={setReason}
        autofocus
      />
      <div class="check two-lines">
        <input
          id="cancel-queued"
          type="checkbox"
          checked={cancelQueuedCalls}
          onChange={({ currentTarget }) => setCancel(currentTarget.checked)}
        />
        <label for="cancel-queued">Also cancel the queued calls</label>
        <p class="hint">
          Otherwise, they wait until dialing is resumed. Once it’s stopped, you’ll see how many there are, and can still cancel them.
        </p>
      </div>
    </FormDialog>
  );
}

type StoppedProps = {
  place: StopPlace;
  counts: StoppedDialingView;
  onCancelled: (counts: StoppedDialingView) => void;
  onClose: () => void;
};

function Stopped({ place, counts, onCancelled, onClose }: StoppedProps) {
  const { queuedCalls, withProvider } = counts;
  const [isAsking, setAsking] = useState(false);
  const title = 'Dialing is stopped';
  const lead = (
    <>
      No call leaves for <bdi>{describePlace(counts.stop)}</bdi> until someone resumes it.
    </>
  );
  const facts = (
    <Facts
      facts={[
        ['Waiting', counted(queuedCalls, 'call')],
        ['With the provider', `${counted(withProvider, 'call')}${withProvider === 0 ? '' : ', which can no longer be stopped'}`],
      ]}
    />
  );
  if (isAsking) {
    return (
      <FormDialog
        key="cancel"
        title={`Cancel ${counted(queuedCalls, 'queued call')}?`}
        lead="They won’t be dialed, even once dialing is resumed. You can’t undo this."
        isAlert
        isDanger
        verb={`Cancel ${counted(queuedCalls, 'call')}`}
        verbing="Cancelling…"
        cancel="Go back"
        act={() => requestStop(place, { cancelQueuedCalls: true })}
        onDone={(after) => {
          setAsking(false);
          onCancelled(after);
        }}
        onClose={() => setAsking(false)}
      >
        {null}
      </FormDialog>
    );
  }
  return (
    <Dialog key="stopped" {...{ title, lead }} onDismiss={onClose}>
      {facts}
      <CloseAction onClose={onClose}>
        {queuedCalls > 0 && (
          <button type="button" class="warns" onClick={() => setAsking(true)}>
            Cancel {counted(queuedCalls, 'queued call')}…
          </button>
        )}
      </CloseAction>
    </Dialog>
  );
}
