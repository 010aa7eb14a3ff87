import { useState } from 'preact/hooks';
import type { Setup } from '#contract/console/directory.ts';
import { FormError, TextField, useAction } from '../../components/form.tsx';
import { Page } from '../../components/page.tsx';
import { fieldError, generalError, isConflict } from '../../state/failure-text.ts';
import { setSession } from '../../state/session.ts';

const prefilled: Setup = { partner: 'My organization', account: 'My account', campaign: 'My first campaign' };

type SetUpProps = {
  /** Called if someone else has already set up the server. */
  onAlreadySetUp: () => void;
};

/** Creates the first partner, account and campaign of a new server, so that the first key can place calls. */
export function SetUp({ onAlreadySetUp }: SetUpProps) {
  const [names, setNames] = useState(prefilled);
  const { isBusy, failure, form, run } = useAction();

  function submit(event: Event): void {
    event.preventDefault();
    const create = async () => {
      const result = await window.callkey.request('setUp', names);
      if (!result.ok && isConflict(result.failure)) onAlreadySetUp();
      return result.ok ? window.callkey.request('showSession', {}) : result;
    };
    void run(create, setSession);
  }

  const field = (name: keyof Setup, label: string, hint: string) => (
    <TextField
      label={label}
      hint={hint}
      error={fieldError(failure, name)}
      type="text"
      autocomplete="off"
      value={names[name]}
      onInput={(typed) => setNames({ ...names, [name]: typed })}
      autofocus={name === 'partner'}
    />
  );
  return (
    <Page title="Set up Callkey">
      <form ref={form} class="set-up" onSubmit={submit} noValidate>
        <p>
          Calls are placed in campaigns. Name your first campaign, and the account and organization it belongs to. You can change the names
          later.
        </p>
        {field('partner', 'Organization', 'Your own organization, or a partner that you serve. It can have several accounts.')}
        {field('account', 'Account', 'A customer or department. Its API keys can’t be used for other accounts.')}
        {field('campaign', 'Campaign', 'What the calls are about.')}
        <FormError text={generalError(failure, ['partner', 'account', 'campaign'])} />
        <div class="actions at-start">
          <button type="submit" class="primary" aria-disabled={isBusy}>
            {isBusy ? 'Creating…' : 'Create and continue'}
          </button>
        </div>
      </form>
    </Page>
  );
}
