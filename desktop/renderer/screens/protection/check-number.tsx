import { useState } from 'preact/hooks';
import type { CheckedNumberView } from '#contract/protection/protection.ts';
import { type Campaign, CampaignSelect, firstPage } from '../../components/choose.tsx';
import { Facts } from '../../components/details.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FormActions, FormError, TextField, useAction } from '../../components/form.tsx';
import { Loadable, useResource } from '../../components/list.tsx';
import { ownZone } from '../../state/clock.ts';
import { fieldError, generalError } from '../../state/failure-text.ts';
import { describeHours, describeOpening, describeReasons, nameCountry } from '../../state/protection.ts';

/** Says what would happen if a number were called now, and why. Calls no one. */
export function CheckNumber({ onClose }: { onClose: () => void }) {
  const campaigns = useResource(() => window.callkey.request('listCampaigns', firstPage));
  const [phone, setPhone] = useState('');
  const [timeZone, setTimeZone] = useState('');
  const [chosen, choose] = useState<Campaign | null>(null);
  const [verdict, setVerdict] = useState<{ on: string; checked: CheckedNumberView } | null>(null);
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const close = unlessBusy(onClose);
  return (
    <Dialog title="Check a number" lead="Shows what would happen if this number were called now. No one is called." onDismiss={close}>
      <Loadable resource={campaigns} noun="campaigns">
        {(view) => {
          const campaign = chosen ?? view.campaigns[0];
          if (!campaign) return <p>There are no campaigns yet.</p>;
          const input = { phone, campaignId: campaign.id, ...(timeZone.trim() !== '' && { timeZone: timeZone.trim() }) };
          const on = JSON.stringify(input);
          return (
            <form
              ref={form}
              noValidate
              onSubmit={(event) => {
                event.preventDefault();
                void run(
                  () => window.callkey.request('checkNumber', input),
                  (checked) => setVerdict({ on, checked }),
                );
              }}
            >
              <TextField
                label="Phone number"
                hint="With the country code, such as +49 30 12345678."
                error={fieldError(failure, 'phone')}
                type="text"
                inputMode="tel"
                autocomplete="off"
                value={phone}
                onInput={setPhone}
                autofocus
              />
              <div class="field">
                <span class="label">Campaign</span>
                <CampaignSelect campaigns={view} chosen={campaign} onChange={(_id, picked) => choose(picked)} isRequired />
              </div>
              <TextField
                label="Time zone (optional)"
                hint="The zone that an integrator would send, such as Europe/Berlin."
                error={fieldError(failure, 'timeZone')}
                type="text"
                autocomplete="off"
                value={timeZone}
                onInput={setTimeZone}
              />
              <FormError text={generalError(failure, ['phone', 'timeZone'])} />
              <div role="status">{verdict?.on === on && failure === null && <Verdict checked={verdict.checked} />}</div>
              <FormActions verb="Check" verbing="Checking…" isBusy={isBusy} onCancel={close} />
            </form>
          );
        }}
      </Loadable>
    </Dialog>
  );
}

function Verdict({ checked }: { checked: CheckedNumberView }) {
  const { phone, allowed, country, opensAt, zoneNames } = checked;
  const hours = describeHours(checked);
  return (
    <div class="verdict">
      <p>
        <span class={`badge ${allowed ? 'good' : 'bad'}`}>{allowed ? 'Can be called now' : 'Can’t be called now'}</span> {phone}
      </p>
      {describeReasons(checked, ownZone.value).map((reason) => (
        <p key={reason}>{reason}</p>
      ))}
      <Facts
        facts={[
          ...(country === null ? [] : [['Country', nameCountry(country)] as const]),
          ...(hours === null ? [] : [['Hours', hours] as const]),
          ...(opensAt === undefined ? [] : [['Next open', describeOpening(opensAt, zoneNames, ownZone.value)] as const]),
        ]}
      />
    </div>
  );
}
