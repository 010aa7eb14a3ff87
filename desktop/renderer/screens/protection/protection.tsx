import { useState } from 'preact/hooks';
import { useView } from '../../components/list.tsx';
import type { ScreenProps } from '../../state/navigation.ts';
import { protectionView, type Tab, tabLabels, tabs } from '../../state/protection.ts';
import { AllowedNumbers } from './allowed-numbers.tsx';
import { CallingHours } from './calling-hours.tsx';
import { CheckNumber } from './check-number.tsx';
import { DoNotCall } from './do-not-call.tsx';
import { homeScope } from './tenancy.tsx';

const pages = { 'do-not-call': DoNotCall, 'calling-hours': CallingHours, numbers: AllowedNumbers } as const;

/** Shows who must not be called, and when and which numbers may be called. Also checks a number against all of these rules. */
export function Protection({ session, title }: ScreenProps) {
  const [view, change] = useView(protectionView.name, protectionView.initial);
  const [isChecking, setChecking] = useState(false);
  const home = homeScope(session);
  if (!home) return null;
  const TabPage = pages[view.tab];
  return (
    <>
      <TabPage
        session={session}
        title={title}
        home={home}
        canChange={session.viewer.userType !== 'account'}
        view={view}
        onView={change}
        tabs={<Tabs chosen={view.tab} onChoose={(tab) => change({ tab })} />}
        check={
          <button type="button" onClick={() => setChecking(true)}>
            Check a number…
          </button>
        }
      />
      {isChecking && <CheckNumber onClose={() => setChecking(false)} />}
    </>
  );
}

function Tabs({ chosen, onChoose }: { chosen: Tab; onChoose: (tab: Tab) => void }) {
  return (
    <nav class="tabs" aria-label="Protection">
      {tabs.map((tab) => (
        <button key={tab} type="button" aria-current={tab === chosen ? 'page' : undefined} onClick={() => onChoose(tab)}>
          {tabLabels[tab]}
        </button>
      ))}
    </nav>
  );
}
