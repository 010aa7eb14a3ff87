import { useState } from 'preact/hooks';
import type { AccountsView } from '#contract/console/directory.ts';
import { optOutScopes } from '#contract/protection/protection.ts';
import { Dialog } from '../../../components/forms/dialog.tsx';
import { FormError } from '../../../components/forms/field.tsx';
import { FormActions } from '../../../components/forms/form-actions.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { Loadable, useResource } from '../../../components/loadable.tsx';
import { announce } from '../../../state/announcement.ts';
import { generalError } from '../../../state/format/failure-text.ts';
import { firstPage } from '../../calls/campaign-select.tsx';
import { type NamedScope, ScopeSelect } from '../scope-select.tsx';

/** Lets users choose whether opt-outs during an account's calls apply to this account only or to all of its partner's accounts. */
export function OptOuts({ onClose }: { onClose: () => void }) {
  const accounts = useResource(() => window.callkey.request('listAccounts', firstPage));
  return (
    <Dialog
      title="Opt-outs during calls"
      lead="A provider can report that someone doesn’t want to be called again. Choose who must stop calling them."
      onDismiss={onClose}
    >
      <Loadable resource={accounts} noun="accounts">
        {(view) => <ChooseAccount view={view} onClose={onClose} />}
      </Loadable>
    </Dialog>
  );
}

function ChooseAccount({ view: { accounts }, onClose }: { view: AccountsView; onClose: () => void }) {
  const [first] = accounts;
  const [chosen, setChosen] = useState<NamedScope | null>(first ? { kind: 'account', ...first } : null);
  if (!chosen) return <p>There are no accounts yet.</p>;
  return (
    <>
      <div class="field">
        <span class="label">In calls from</span>
        <ScopeSelect home={null} kinds={['account']} chosen={chosen} onChoose={setChosen} />
      </div>
      <OptOutForm key={chosen.id} account={chosen} onClose={onClose} />
    </>
  );
}

const labels = { account: 'Only this account stops calling them', partner: 'All accounts of the partner stop calling them' } as const;

function OptOutForm({ account: { id, name }, onClose }: { account: NamedScope; onClose: () => void }) {
  const resource = useResource(() => window.callkey.request('showOptOuts', { id }));
  const { isBusy, failure, form, run, unlessBusy } = useAction();
  const [choice, setChoice] = useState<(typeof optOutScopes)[number] | null>(null);
  return (
    <Loadable resource={resource} noun="the setting">
      {({ listedFor }) => (
        <form
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void run(
              () => window.callkey.request('setOptOuts', { id, listedFor: choice ?? listedFor }),
              () => {
                announce(`The setting for opt-outs during calls from ${name} was changed.`);
                onClose();
              },
            );
          }}
        >
          <fieldset>
            <legend>If someone opts out</legend>
            {optOutScopes.map((scope) => (
              <label key={scope} class="check">
                <input type="radio" name="opt-outs" checked={(choice ?? listedFor) === scope} onChange={() => setChoice(scope)} />
                {labels[scope]}
              </label>
            ))}
          </fieldset>
          <FormError text={generalError(failure, [])} />
          <FormActions verb="Save" verbing="Saving…" isBusy={isBusy} onCancel={unlessBusy(onClose)} />
        </form>
      )}
    </Loadable>
  );
}
