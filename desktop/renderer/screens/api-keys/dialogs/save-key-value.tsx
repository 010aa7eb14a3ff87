import { useState } from 'preact/hooks';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console/api-keys.ts';
import type { SessionView } from '#contract/console/session.ts';
import type { Failure } from '../../../../ipc.ts';
import { CopyButton } from '../../../components/copy-button.tsx';
import { OneTimeSecret, SecretDialog } from '../../../components/forms/secret.tsx';
import { useFreshResource } from '../../../components/loadable.tsx';
import { toExpiry } from '../../../components/time.tsx';
import { describeFailure } from '../../../state/format/failure-text.ts';
import { formatInstant } from '../../../state/format/format-time.ts';
import { describeKeyAccess } from '../../../state/format/labels.ts';
import { server } from '../../../state/session.ts';
import { type Campaign, CampaignSelect, firstPage } from '../../calls/campaign-select.tsx';
import { ReferenceLink } from '../reference-link.tsx';
import { exampleCall, keyLine } from '../snippets.ts';

/** @property limitFailure why the key didn't get the limits of the key that it replaces */
export type NewApiKey = CreatedApiKeyView & { limitFailure?: Failure };

/** A new key with its value. */
export type ShownKey = { apiKey: ApiKeyView; secret: OneTimeSecret; limitFailure: Failure | undefined };

export function shownKey({ apiKey, keyValue, limitFailure }: NewApiKey): ShownKey {
  return { apiKey, secret: new OneTimeSecret(keyValue), limitFailure };
}

type SaveKeyValueProps = { session: SessionView; shown: ShownKey; onClose: (unsaved: boolean) => void };

export function SaveKeyValue({ session, shown, onClose }: SaveKeyValueProps) {
  const { apiKey, secret, limitFailure } = shown;
  const campaigns = useFreshResource('campaigns', () => window.callkey.request('listCampaigns', firstPage));
  const { value: view, failure } = campaigns.state.value;
  // The command doesn't work without a campaign, so it can't be copied before the campaigns have loaded.
  const isLoading = view === null && failure === null;
  const [chosen, choose] = useState<Campaign | null>(null);
  const campaign = chosen ?? view?.campaigns[0];
  const hasSeveral = view !== null && (view.campaigns.length > 1 || view.nextCursor !== null);
  const snippet = exampleCall(server.value, campaign?.id ?? '{campaignId}', `test-${apiKey.id.slice(-12)}`);
  const { expiresAt, expiryTimeZone } = apiKey;
  return (
    <SecretDialog
      title="Save your key"
      lead={
        <>
          This is the only time you’ll see the value of <strong>{apiKey.name}</strong>. Store it where your integration keeps its secrets.
        </>
      }
      label="Key value"
      secret={secret}
      asLine={keyLine}
      lost="This key value can’t be shown again. If you lose it, revoke the key and create a new one."
      onClose={onClose}
    >
      {limitFailure && (
        <p class="warning" role="alert">
          This key couldn’t be limited. {describeFailure(limitFailure)} After you close this dialog, limit the key in its details.
        </p>
      )}
      <div class="field">
        <div class="label-row">
          <h3>
            {campaign || isLoading ? 'Try it: place a test call in ' : 'Example call'}
            {campaign && !hasSeveral && <bdi>{campaign.name}</bdi>}
          </h3>
          {campaign && hasSeveral && (
            <CampaignSelect campaigns={view} chosen={campaign} isRequired onChange={(_id, picked) => choose(picked)} />
          )}
          {!isLoading && <CopyButton text={snippet} noun="command" />}
        </div>
        <pre aria-busy={isLoading}>{snippet}</pre>
        <p class="hint">
          Paste this command into a terminal, then paste the key when prompted. No one has this phone number, so no one is called.{' '}
          <ReferenceLink verb="has examples in eight languages." />
        </p>
      </div>
      <p class="hint">
        This key has access to {describeKeyAccess(session)} and works until{' '}
        {expiresAt === null ? 'it’s revoked' : formatInstant(toExpiry(expiresAt, expiryTimeZone))}.
      </p>
    </SecretDialog>
  );
}
