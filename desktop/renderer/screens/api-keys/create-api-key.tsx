import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApiKeyView, CreatedApiKeyView } from '#contract/console/api-keys.ts';
import type { SessionView } from '#contract/console/session.ts';
import { customRange } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import { formatCount } from '#contract/text/count.ts';
import { countCodePoints, describeLineProblem, normalizeLine } from '#contract/text/text.ts';
import type { Failure, Result } from '../../../ipc.ts';
import { KeyAccess, ReferenceLink } from '../../components/api-key.tsx';
import { CallBadge, DialerOff } from '../../components/call.tsx';
import { type Campaign, ChooseCampaign, useCampaigns } from '../../components/choose.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { DayInput } from '../../components/dates.tsx';
import { Field, FormDialog, TextField, useFieldError, useForm } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { OneTimeSecret, SecretDialog } from '../../components/secret.tsx';
import { toExpiry } from '../../components/time.tsx';
import { formatAddress } from '../../state/addresses.ts';
import { warn } from '../../state/announcement.ts';
import {
  dateForChoice,
  describeClockLead,
  describeRange,
  type ExpirationDraft,
  exampleCall,
  expirationChoices,
  expirationLabels,
  isNameTaken,
  keyLine,
  resolveExpiration,
  summarizeLimits,
  timeZonesAfter,
  toExpirationChoice,
} from '../../state/api-keys.ts';
import { clockLead, hasOwnZone, now, ownZone, readClock } from '../../state/clock.ts';
import { dayProblem, isDay } from '../../state/days.ts';
import { describeFailure } from '../../state/failure-text.ts';
import { formatInstant } from '../../state/format.ts';
import { describeKeyAccess } from '../../state/labels.ts';
import { server } from '../../state/session.ts';

/** A new key. Its value is dropped when its dialog closes. @property limitFailure why it didn't get the limits of the key that it replaces */
export type NewApiKey = { apiKey: ApiKeyView; secret: OneTimeSecret; limitFailure: Failure | null };

type CreateApiKeyProps = {
  session: SessionView;
  /** The listed keys, whose names are already in use. */
  listed: readonly ApiKeyView[];
  replaced: ApiKeyView | null;
  onCreated: (created: NewApiKey) => void;
  /** Called if the core didn't respond, so the key may have been created. */
  onMaybeCreated: () => void;
  onClose: () => void;
};

export function CreateApiKey({ session, listed, replaced, onCreated, onMaybeCreated, onClose }: CreateApiKeyProps) {
  const [name, setName] = useState(replaced?.name ?? '');
  const [chosen, choose] = useState<Omit<ExpirationDraft, 'timeZone'> & { timeZone?: string }>({
    choice: replaced ? toExpirationChoice(replaced) : '',
    date: '',
    // Otherwise, the daily limit would start over at another midnight.
    ...(replaced && { timeZone: replaced.timeZone }),
  });
  // Follows the machine's time zone, unless the user chooses another one, or the key replaces one that has its own.
  const draft: ExpirationDraft = { timeZone: ownZone.value, ...chosen };
  useState(readClock);
  const [copiesLimits, setCopiesLimits] = useState(true);
  const line = normalizeLine(name, limits.apiKeyName);
  const length = countCodePoints(line);
  const nameProblem = line === '' ? 'Enter a name for the key.' : describeLineProblem(line, limits.apiKeyName);
  // Computed again every minute, because the range and the date of every choice change at midnight.
  const resolved = resolveExpiration(draft, now.value);
  const limitsToCopy = replaced ? summarizeLimits(replaced) : '';
  const access = describeKeyAccess(session);
  const newAccess = access !== null && (
    <>
      Like you, the new key has access to <strong>{access}</strong>. To limit its access, create it as a user with less access.
    </>
  );

  /** If the new key can't be limited, it's still returned, with the reason, because its value is shown only once. */
  async function create(): Promise<Result<CreatedApiKeyView & { limitFailure: Failure | null }>> {
    if (!resolved.ok) throw new Error('The form checks this before.');
    const { expiration } = resolved;
    const created = await window.callkey.request('createApiKey', { name, expiration, timeZone: draft.timeZone });
    if (!created.ok || !replaced || !copiesLimits)
      return created.ok ? { ok: true, value: { ...created.value, limitFailure: null } } : created;
    const { addresses, callsPerDay } = replaced;
    const limited = await window.callkey.request('changeApiKey', { id: created.value.apiKey.id, addresses, callsPerDay });
    const change = limited.ok ? { apiKey: limited.value.apiKey, limitFailure: null } : { limitFailure: limited.failure };
    return { ok: true, value: { ...created.value, ...change } };
  }

  return (
    <FormDialog
      title={replaced ? 'Replace API key' : 'Create API key'}
      lead={
        replaced && (
          <>
            Create a replacement for <strong>{replaced.name}</strong> and update your integration with its value. The old key keeps working
            until you revoke it.
          </>
        )
      }
      problems={{ name: nameProblem, ...(resolved.ok ? {} : { [resolved.field]: resolved.problem }) }}
      act={create}
      onDone={({ keyValue, ...created }) => onCreated({ ...created, secret: new OneTimeSecret(keyValue) })}
      onDoneUnmounted={({ apiKey }) => warn(`${apiKey.name} was created, but its value couldn’t be shown. Revoke it.`)}
      lost="The server may still have created the key. Check the list, and revoke the key if it’s there."
      onLost={onMaybeCreated}
      verb="Create Key"
      verbing="Creating…"
      onClose={onClose}
    >
      {/* The two keys' access differs if someone else created the old key. */}
      {replaced && (
        <>
          <KeyAccess id={replaced.id} subject="The old key" />
          {newAccess && <p>{newAccess}</p>}
        </>
      )}
      <TextField
        name="name"
        label="Name"
        hint="Name the system that will use the key. The name is the only way to tell your keys apart."
        warning={
          !replaced && isNameTaken(listed, line)
            ? 'A key with this name already exists. The name is the only way to tell keys apart.'
            : null
        }
        aside={
          length >= 0.9 * limits.apiKeyName && (
            <span class={length > limits.apiKeyName ? 'counter over' : 'counter'}>
              {formatCount(length)} / {formatCount(limits.apiKeyName)}
            </span>
          )
        }
        required
        value={name}
        onInput={setName}
        autofocus
      />
      <ExpirationFields replaced={replaced} draft={draft} onChange={(changes) => choose({ ...chosen, ...changes })} />
      {limitsToCopy !== '' && (
        <div class="check">
          <input
            id="carry-limits"
            type="checkbox"
            checked={copiesLimits}
            onChange={({ currentTarget }) => setCopiesLimits(currentTarget.checked)}
          />
          <label for="carry-limits">Copy the old key’s limits: {limitsToCopy}</label>
        </div>
      )}
      <p class="hint">{!replaced && newAccess} Use one key per integration: revoking a key immediately stops everything that uses it.</p>
    </FormDialog>
  );
}

type ChoicesProps = { draft: ExpirationDraft; error: string | null; onChange: (changes: Partial<ExpirationDraft>) => void };
type ExpirationFieldsProps = Pick<CreateApiKeyProps, 'replaced'> & Omit<ChoicesProps, 'error'>;

function ExpirationFields({ replaced, draft, onChange }: ExpirationFieldsProps) {
  const { choice, date, timeZone } = draft;
  const { hasTried, clearError } = useForm();
  const refused = useFieldError('expiration');
  const resolved = resolveExpiration(draft, now.value);
  const range = customRange(now.value, timeZone);
  const problemAt = (field: 'choice' | 'date') =>
    (!resolved.ok && resolved.field === field && (hasTried || (field === 'date' && isDay(date))) ? resolved.problem : null) ??
    (field === (choice === 'custom' ? 'date' : 'choice') ? refused : null);
  const change = (changes: Partial<ExpirationDraft>) => {
    clearError();
    onChange(changes);
  };
  return (
    <>
      <Choices draft={draft} error={problemAt('choice')} onChange={change} />
      {clockLead.value !== 0 && (
        <p class="warning" role="status">
          {describeClockLead(clockLead.value)}
        </p>
      )}
      {choice === 'custom' && (
        <Field
          label="Last day"
          error={problemAt('date')}
          // The other errors contain the range.
          hint={[null, dayProblem].includes(problemAt('date')) && `Any day ${describeRange(now.value, timeZone)}.`}
        >
          {(binding) => (
            <DayInput {...binding} min={range.earliest} max={range.latest} value={date} onInput={(day) => change({ date: day })} />
          )}
        </Field>
      )}
      <div class="box" hidden={!resolved.ok || resolved.text === ''}>
        <output>{resolved.ok && resolved.text}</output>
        {choice === '5' && <p class="hint">A key can’t work for five whole years, so it expires a day earlier.</p>}
        {choice !== '' && (choice !== 'none' || replaced) && (
          <ZoneField {...{ replaced, timeZone }} expires={choice !== 'none'} onChange={change} />
        )}
      </div>
    </>
  );
}

function Choices({ draft: { choice, timeZone }, error, onChange }: ChoicesProps) {
  const id = useId();
  const invalid = error === null ? undefined : 'true';
  return (
    <fieldset aria-describedby={error === null ? undefined : `${id}-error`}>
      <legend>Expiration</legend>
      <div class="choices">
        {expirationChoices.map((each, index) => (
          <div key={each} class="choice">
            <input
              type="radio"
              name={id}
              checked={each === choice}
              // The group counts as one field, so only its first button is marked and gets the focus.
              aria-invalid={index === 0 ? invalid : undefined}
              aria-labelledby={`${id}-${each}`}
              aria-describedby={`${id}-${each}-day`}
              onChange={() => onChange({ choice: each })}
            />
            <span id={`${id}-${each}`}>{expirationLabels[each]}</span>
            <span id={`${id}-${each}-day`} class="caption">
              {dateForChoice(each, now.value, timeZone)}
            </span>
          </div>
        ))}
      </div>
      {error !== null && (
        <p id={`${id}-error`} class="error">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** @property expires whether the key expires. Otherwise, only its daily limit depends on the zone */
type ZoneFieldProps = Pick<ExpirationFieldsProps, 'replaced' | 'onChange'> & { timeZone: string; expires: boolean };

/** Shows the machine's own zone; a button offers others. If the zone isn't the machine's, or was refused, the others are shown right away. */
function ZoneField({ replaced, timeZone, expires, onChange }: ZoneFieldProps) {
  const [wasOpened, setOpen] = useState(timeZone !== ownZone.peek());
  const error = useFieldError('timeZone');
  const isOpen = wasOpened || error !== null || !hasOwnZone.value;
  const select = useRef<HTMLSelectElement>(null);
  const wasPressed = useRef(false);
  // Only after the button was pressed, which then disappears: a list shown from the start must not take the focus from the choices.
  useLayoutEffect(() => {
    if (wasPressed.current) select.current?.focus();
  }, [isOpen]);
  if (!isOpen) {
    return (
      <p class="hint">
        {expires ? 'Your computer’s time zone.' : 'A daily limit starts over at midnight in your computer’s time zone.'}{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            wasPressed.current = true;
            setOpen(true);
          }}
        >
          Use another time zone
        </button>
      </p>
    );
  }
  return (
    <Field name="timeZone" label="Time zone" hint={describeZone(replaced, timeZone, expires)}>
      {(binding) => (
        <select {...binding} ref={select} value={timeZone} onChange={({ currentTarget }) => onChange({ timeZone: currentTarget.value })}>
          {timeZonesAfter(ownZone.value).map((zone) => (
            <option key={zone} value={zone}>
              {zone === ownZone.value && hasOwnZone.value ? `${zone} (this computer)` : zone}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function describeZone(replaced: ApiKeyView | null, timeZone: string, expires: boolean): string {
  const end = 'The key stops working at the end of its last day in this time zone';
  if (replaced)
    return timeZone === replaced.timeZone
      ? `The old key’s time zone. ${expires ? `${end}, and its` : 'Its'} daily limit starts over at midnight there.`
      : `The old key’s time zone is ${replaced.timeZone}, so the daily limit will start over at another midnight.`;
  return hasOwnZone.value ? `${end}.` : `Your computer reports no time zone that the server knows. ${end}.`;
}

type SaveKeyValueProps = { session: SessionView; created: NewApiKey; onClose: (unsaved: boolean) => void };

export function SaveKeyValue({ session, created: { apiKey, secret, limitFailure }, onClose }: SaveKeyValueProps) {
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
      <TestCall apiKey={apiKey} />
      <p class="hint">
        This key has access to {describeKeyAccess(session)} and works until{' '}
        {expiresAt === null ? 'it’s revoked' : formatInstant(toExpiry(expiresAt, expiryTimeZone))}.
      </p>
    </SecretDialog>
  );
}

function TestCall({ apiKey }: { apiKey: ApiKeyView }) {
  const { view: campaigns, failure } = useCampaigns(60_000).state.value;
  // The command doesn't work without a campaign, so it can't be copied before the campaigns have loaded.
  const isLoading = campaigns === null && failure === null;
  const [chosen, choose] = useState<Campaign | null>(null);
  const campaign = chosen ?? campaigns?.options[0];
  const hasSeveral = campaigns !== null && (campaigns.options.length > 1 || !campaigns.isAll);
  const snippet = exampleCall(server.value, campaign?.id ?? '{campaignId}', `test-${apiKey.id.slice(-12)}`);
  return (
    <div class="field">
      <div class="row between label-row">
        <h3>
          {campaign || isLoading ? 'Try it: place a test call in ' : 'Example call'}
          {campaign && !hasSeveral && <bdi>{campaign.name}</bdi>}
        </h3>
        {campaign && hasSeveral && <ChooseCampaign campaigns={campaigns} chosen={campaign} onChoose={choose} />}
        {!isLoading && <CopyButton text={snippet} noun="command" />}
      </div>
      <pre aria-busy={isLoading}>{snippet}</pre>
      <p class="hint">
        Paste this command into a terminal, then paste the key when prompted. No one has this phone number, so no one is called.{' '}
        <ReferenceLink verb="has examples in eight languages." />
      </p>
    </div>
  );
}

const followMs = 2_000;

/** Shows the command for a key that hasn't been used yet, waits for its first call, and says how that one ends. */
export function FirstCall({ apiKey, onUsed }: { apiKey: ApiKeyView; onUsed: () => void }) {
  const { id, lastUsedAt } = apiKey;
  const load = () =>
    window.callkey.request('listAllCalls', { state: null, apiKey: id, search: '', from: '', to: '', timeZone: '', cursor: null });
  const { view, loadedAt } = useList({ key: `first-call/${id}`, every: followMs, load }).state.value;
  const call = view?.calls.at(-1);
  // The core writes with a delay that the key was used.
  useEffect(() => {
    if (call && lastUsedAt === null) onUsed();
  }, [loadedAt]);
  return (
    <section>
      <p class="line" role="status">
        {call ? (
          <>
            <a href={formatAddress('calls', { campaign: call.campaign.id, open: call.contactId })}>The first call</a>
            <CallBadge call={call} />
          </>
        ) : (
          'Waiting for the first call…'
        )}
      </p>
      {call?.detail && <p class="caption">{call.detail}</p>}
      <DialerOff />
      <TestCall apiKey={apiKey} />
    </section>
  );
}
