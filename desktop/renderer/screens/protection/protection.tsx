import { useState } from 'preact/hooks';
import type { CheckedNumberView } from '#contract/protection/protection.ts';
import { type Campaign, ChooseCampaign, useCampaigns } from '../../components/choose.tsx';
import { Facts } from '../../components/details.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form, FormActions, FormError, TextField, useForm } from '../../components/form.tsx';
import { Loadable, useFilters } from '../../components/list.tsx';
import { StopButton } from '../../components/stops.tsx';
import { ownZone } from '../../state/clock.ts';
import type { ScreenProps } from '../../state/navigation.ts';
import { describeHours, describeReasons, formatForPerson, nameCountry, ownTenancy } from '../../state/protection.ts';
import { AllowedNumbers } from './allowed-numbers.tsx';
import { CallingHours } from './calling-hours.tsx';
import { DoNotCall } from './do-not-call.tsx';
import { PaceAndLimits } from './pace-and-limits.tsx';
import { screenFilters } from './tenancy.tsx';

const tabs = [
  { name: 'do-not-call', label: 'Do not call', Content: DoNotCall },
  { name: 'calling-hours', label: 'Calling hours', Content: CallingHours },
  { name: 'numbers', label: 'Numbers', Content: AllowedNumbers },
  { name: 'limits', label: 'Pace and limits', Content: PaceAndLimits },
] as const;

export function Protection({ session, title }: ScreenProps) {
  const [filters, change] = useFilters(screenFilters);
  const [isChecking, setChecking] = useState(false);
  const own = ownTenancy(session);
  if (!own) return null;
  const { Content } = tabs.find(({ name }) => name === filters.tab) ?? tabs[0];
  return (
    <>
      <Content
        title={title}
        own={own}
        canChange={session.viewer.userType !== 'account'}
        filters={filters}
        onChange={change}
        tabs={
          <nav class="row tabs" aria-label="Protection">
            {tabs.map(({ name, label }) => (
              <button
                key={name}
                type="button"
                aria-current={name === filters.tab ? 'page' : undefined}
                onClick={() => change({ tab: name })}
              >
                {label}
              </button>
            ))}
          </nav>
        }
        actions={(shown) => (
          <>
            <StopButton shown={shown} />
            <button type="button" onClick={() => setChecking(true)}>
              Check a number…
            </button>
          </>
        )}
      />
      {isChecking && <CheckNumber onClose={() => setChecking(false)} />}
    </>
  );
}

function CheckNumber({ onClose }: { onClose: () => void }) {
  const campaigns = useCampaigns(null);
  const [phone, setPhone] = useState('');
  const [timeZone, setTimeZone] = useState('');
  const [chosen, choose] = useState<Campaign | null>(null);
  const [verdict, setVerdict] = useState<{ on: string; checked: CheckedNumberView } | null>(null);
  return (
    <Dialog title="Check a number" lead="Shows what would happen if this number were called now. No one is called." onDismiss={onClose}>
      <Loadable list={campaigns} noun="campaigns">
        {(view) => {
          const campaign = chosen ?? view.options[0];
          if (!campaign) return <p>There are no campaigns yet.</p>;
          const input = { phone, campaignId: campaign.id, ...(timeZone.trim() !== '' && { timeZone: timeZone.trim() }) };
          const on = JSON.stringify(input);
          return (
            <Form act={() => window.callkey.request('checkNumber', input)} onDone={(checked) => setVerdict({ on, checked })}>
              <TextField
                name="phone"
                label="Phone number"
                hint="With the country code, such as +49 30 12345678."
                inputMode="tel"
                value={phone}
                onInput={setPhone}
                autofocus
              />
              <div class="field">
                <span class="label">Campaign</span>
                <ChooseCampaign campaigns={view} chosen={campaign} onChoose={choose} />
              </div>
              <TextField
                name="timeZone"
                label="Time zone (optional)"
                hint="The zone that an integrator would send, such as Europe/Berlin."
                value={timeZone}
                onInput={setTimeZone}
              />
              <FormError />
              <Verdict checked={verdict?.on === on ? verdict.checked : null} />
              <FormActions verb="Check" verbing="Checking…" onCancel={onClose} />
            </Form>
          );
        }}
      </Loadable>
    </Dialog>
  );
}

/** @property checked null if the input has changed since */
function Verdict({ checked }: { checked: CheckedNumberView | null }) {
  const { failure } = useForm();
  if (!checked || failure) return <div role="status" />;
  const { phone, allowed, country, opensAt, lastCalledAt, zoneNames } = checked;
  const hours = describeHours(checked);
  return (
    <div role="status">
      <div class="box stack">
        <p>
          <span class={`badge ${allowed ? 'good' : 'bad'}`}>{allowed ? 'Can be called now' : 'Can’t be called now'}</span> {phone}
        </p>
        {describeReasons(checked, ownZone.value).map((reason) => (
          <p key={reason}>{reason}</p>
        ))}
        <Facts
          facts={[
            ['Country', country && nameCountry(country)],
            ['Hours', hours],
            ['Last called', lastCalledAt !== undefined && formatForPerson(lastCalledAt, zoneNames, ownZone.value)],
            ['Next open', opensAt !== undefined && formatForPerson(opensAt, zoneNames, ownZone.value)],
          ]}
        />
      </div>
    </div>
  );
}
