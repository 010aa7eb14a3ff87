import { expect } from 'chai';
import type { z } from 'zod';
import { placeCallSchema, validatePlaceCall } from '#contract/calls/calls.ts';
import { outcomeSchema } from '#contract/calls/dialer.ts';
import { auditActions, recordExportSchema } from '#contract/console/activity.ts';
import {
  changeApiKeySchema,
  createApiKeySchema,
  identifyApiKeySchema,
  revokeApiKeysSchema,
  revokeQuerySchema,
} from '#contract/console/api-keys.ts';
import { callsQuerySchema } from '#contract/console/calls.ts';
import { changeCampaignSchema } from '#contract/console/directory.ts';
import {
  changePasswordSchema,
  newPasswordSchema,
  selectTenancySchema,
  signInSchema,
  tenanciesQuerySchema,
} from '#contract/console/session.ts';
import { changeUserSchema, createUserSchema } from '#contract/console/users.ts';
import { hoursRuleSchema, hoursRulesSchema } from '#contract/protection/calling-hours.ts';
import { contactLimitsSchema, paceSchema, stopDialingSchema } from '#contract/protection/dialing.ts';
import { routes } from '#contract/routes.ts';
import { validate } from '#contract/validate.ts';

const phone = '+493012345678';
const outcome = { handoffId: 'h', state: 'busy' };
const ids = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`);
const manyVariables = (count: number) => Object.fromEntries(ids(count).map((name) => [name, '']));

/** A schema with input that is valid except for these fields. */
type Input = [schema: z.ZodType, input: unknown];
const call = (fields: object): Input => [placeCallSchema, { contact: { phone }, ...fields }];
const contact = (fields: object) => call({ contact: { phone, ...fields } });
const variables = (fields: object) => call({ variables: fields });
const newKey = (fields: object): Input => [createApiKeySchema, { name: 'CRM', expiration: { kind: 'none' }, timeZone: 'UTC', ...fields }];
const newUser = (fields: object): Input => [createUserSchema, { email: 'ada@example.com', name: 'Ada', userType: 'staff', ...fields }];
const limited = (fields: object): Input => [changeApiKeySchema, fields];
const hours = (from: string, to: string): Input => [hoursRuleSchema, { prefix: '', days: ['mon'], from, to }];
const windows = (count: number, toRule: (n: number) => object): Input => [
  hoursRulesSchema,
  Array.from({ length: count }, (_, n) => ({ prefix: '', from: '09:00', to: `${n + 10}:00`, ...toRule(n) })),
];
const settings = (fields: object): Input => [changeCampaignSchema, { settings: fields }];
const stop = (fields: object): Input => [stopDialingSchema, { scope: 'account', id: 'a', ...fields }];
const pace = (fields: object): Input => [paceSchema, { perSecond: null, liveCalls: null, ...fields }];
const contactLimits = (fields: object): Input => [contactLimitsSchema, { calls: 3, days: 1, minutesBetween: 0, ...fields }];
const search = (text: string): Input => [tenanciesQuerySchema, { search: text }];

const control = 'Must not contain control characters.';
const surrogate = 'Must not contain half of a character (a lone surrogate). Type the text again instead of pasting it.';
const instant = 'Must be a time in UTC in RFC 3339 format, such as 2026-11-21T09:00:00.000Z.';
const phoneNumber = 'Must be a phone number in E.164 format, such as +493012345678.';
const email = 'Must be an email address.';
const visible = 'Must be an email address, without invisible characters. Remove U+00AD.';
const invisible = (code: string) =>
  `Remove the invisible character U+${code}, which can make one name look like another. Type the name instead of pasting it.`;
const identifier = 'Must be an ID of 1 to 64 letters, digits, hyphens and underscores.';
const digest = 'Must be the SHA-256 hash of the key value as 64 hexadecimal digits.';
const requestId = 'Must be 1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or "..".';
const variableName = 'Must be 1 to 64 characters, without control characters.';
const time = 'Must be a time from 00:00 to 24:00, such as 09:00.';
const day = 'Must be a date in the format YYYY-MM-DD.';
const userType = 'Must be account, partner or staff.';
const states = 'Must be one of queued, dialing, completed, no_answer, busy, failed, unknown, cancelled, lapsed, blocked.';
const tenancy = 'Must be {"kind":"account" or "partner","id":…}, or {"kind":null} to clear the selection.';
const stopped = 'Must be the ID of the partner, account or campaign, or omitted for the server.';
const required = 'This field is required.';
const tooManyWindows = 'At most 12 windows per day are allowed for each prefix.';
const atMost = (count: number) => `Must be at most ${count} characters.`;
const timeZone = (likely: string) => `Must be an IANA time zone, such as ${likely}.`;
const [nine, before] = ['2026-11-21T09:00:00Z', '2026-11-21T08:59:59Z'];
/** JSON can contain this name; an object literal can't. */
const proto: object = JSON.parse('{"__proto__":"a"}');

const wrong: [what: string, input: Input, path: string, message: string][] = [
  ['a phone number with spaces', contact({ phone: '+49 30' }), 'contact.phone', phoneNumber],
  ['a request ID of 129 characters', call({ requestId: 'x'.repeat(129) }), 'requestId', requestId],
  ['an empty request ID', call({ requestId: '' }), 'requestId', requestId],
  ['a request ID with a space', call({ requestId: 'a b' }), 'requestId', requestId],
  ['a request ID that would vanish from a URL path', call({ requestId: '.' }), 'requestId', requestId],
  ['a request ID that would change a URL path', call({ requestId: '..' }), 'requestId', requestId],
  ['an unknown contact time zone', contact({ timeZone: 'Mars' }), 'contact.timeZone', timeZone('Europe/Berlin')],
  ['an abbreviation as a contact time zone', contact({ timeZone: 'BST' }), 'contact.timeZone', timeZone('Europe/London for BST')],
  ['a contact without a name', contact({ name: ' ' }), 'contact.name', 'Must not be empty.'],
  ['a name of 201 characters', contact({ name: 'x'.repeat(201) }), 'contact.name', atMost(200)],
  ['a name with a line break', contact({ name: 'a\nb' }), 'contact.name', control],
  ['51 variables', variables(manyVariables(51)), 'variables', 'Must have at most 50 variables.'],
  ['a variable named __proto__', variables(proto), 'variables', "A variable can't be named __proto__."],
  ['a variable without a name', variables({ '': 'a' }), 'variables.', variableName],
  ['a variable name of 65 characters', variables({ ['x'.repeat(65)]: 'a' }), `variables.${'x'.repeat(65)}`, variableName],
  ['a variable name with a control character', variables({ 'a\tb': 'a' }), 'variables.a\tb', variableName],
  ['a variable of 1,001 characters', variables({ a: 'x'.repeat(1_001) }), 'variables.a', atMost(1000)],
  ['a variable with a control character', variables({ a: '\0' }), 'variables.a', control],
  ['a variable with a lone surrogate', variables({ a: '\uD83D' }), 'variables.a', surrogate],
  ['a date without a time', call({ notBefore: '2026-11-21' }), 'notBefore', instant],
  ['a time without a zone', call({ notBefore: '2026-11-21T09:00:00' }), 'notBefore', instant],
  ["a time that isn't in UTC", call({ notBefore: '2026-11-21T09:00:00+01:00' }), 'notBefore', instant],
  ['a time of 31 characters', call({ notAfter: '2026-11-21T09:00:00.0000000000Z' }), 'notAfter', instant],
  ['notAfter before notBefore', call({ notBefore: nine, notAfter: before }), 'notAfter', 'Must be after notBefore.'],
  ['notAfter at notBefore', call({ notBefore: nine, notAfter: nine }), 'notAfter', 'Must be after notBefore.'],
  ['an unknown key time zone', newKey({ timeZone: '+02:00' }), 'timeZone', timeZone('Europe/Berlin')],
  ['a key name with a lone surrogate', newKey({ name: '\uDE00a' }), 'name', surrogate],
  ['an invalid expiration date', newKey({ expiration: { kind: 'custom', date: '31.1.2027' } }), 'expiration.date', day],
  ["a day that doesn't exist", newKey({ expiration: { kind: 'custom', date: '2027-02-29' } }), 'expiration.date', day],
  [
    'an invalid second address',
    limited({ addresses: ['10.0.0.0/8', '10.0.0.0/33'] }),
    'addresses.1',
    'The prefix length must be at most 32.',
  ],
  [
    '51 addresses',
    limited({ addresses: ids(51).map((_, n) => `192.0.2.${n}`) }),
    'addresses',
    'Must contain at most 50 addresses and networks.',
  ],
  ['a limit of no calls', limited({ callsPerDay: 0 }), 'callsPerDay', 'Must be at least 1.'],
  ['a limit of one and a half calls', limited({ callsPerDay: 1.5 }), 'callsPerDay', 'Must be a whole number.'],
  ['a limit of calls as text', limited({ callsPerDay: '5' }), 'callsPerDay', 'Must be a whole number.'],
  ['a change of nothing', limited({}), '', 'Must contain addresses or callsPerDay.'],
  ['an unknown user type', newUser({ userType: 'admin' }), 'userType', userType],
  ['a user without a type', newUser({ userType: undefined }), 'userType', userType],
  ['an account ID with invalid characters', newUser({ accountId: 'a b' }), 'accountId', identifier],
  ['an account ID of 65 characters', newUser({ accountId: 'a'.repeat(65) }), 'accountId', identifier],
  ['an empty account ID', newUser({ accountId: '' }), 'accountId', identifier],
  ['an email address with an invisible character', newUser({ email: 'a\u00ad@b' }), 'email', visible],
  ...['ada', '@example.com', 'ada@', 'a da@example.com', 'ada@exam ple.com', 'a@b@c', `a@${'b'.repeat(253)}`, 'a\0@b'].map(
    (address): (typeof wrong)[number] => [`the email address ${address.slice(0, 20)}`, newUser({ email: address }), 'email', email],
  ),
  ['a password of 7 characters', [newPasswordSchema, '1234567'], '', 'Must be at least 8 characters.'],
  ['a password of 129 characters', [newPasswordSchema, 'x'.repeat(129)], '', atMost(128)],
  ['an unknown kind of tenancy', [selectTenancySchema, { kind: 'staff', id: 'a' }], '', tenancy],
  [
    'a value that is neither true nor false',
    [revokeQuerySchema, { cancelQueuedCalls: 'yes' }],
    'cancelQueuedCalls',
    'Must be true or false.',
  ],
  ['an empty list of keys', [revokeApiKeysSchema, { ids: [] }], 'ids', 'Must contain at least one ID.'],
  ['an invalid key ID', [revokeApiKeysSchema, { ids: ['%00'] }], 'ids.0', identifier],
  ['101 keys', [revokeApiKeysSchema, { ids: ids(101) }], 'ids', 'Must contain at most 100 IDs.'],
  ['half a digest', [identifyApiKeySchema, { sha256: 'a'.repeat(63) }], 'sha256', digest],
  ['more than a digest', [identifyApiKeySchema, { sha256: 'a'.repeat(65) }], 'sha256', digest],
  ['a time without its zero', hours('9:00', '20:00'), 'from', time],
  ['an end that is not a time', hours('09:00', '1pm'), 'to', time],
  [
    'an end before the start',
    hours('20:00', '09:00'),
    'to',
    'The end must be later than the start. For a window past midnight, use two rules.',
  ],
  ['an unknown kind of list', [recordExportSchema, { list: 'keys', rows: 0 }], 'list', 'Must be api-keys, calls, users or activity.'],
  ['13 windows of a prefix on a weekday', windows(13, (n) => ({ days: n === 0 ? ['sun', 'mon'] : ['mon'] })), '12', tooManyWindows],
  ['13 windows of a prefix on a date', windows(13, () => ({ date: '2026-12-25' })), '12', tooManyWindows],
  ['a stop of an account without its ID', stop({ id: undefined }), 'id', stopped],
  ['a stop of the server with an ID', stop({ scope: 'server' }), 'id', stopped],
  ['a stop of a planet', stop({ scope: 'planet' }), 'scope', 'Must be one of server, partner, account, campaign.'],
  ['a reason of 201 characters', stop({ reason: 'x'.repeat(201) }), 'reason', atMost(200)],
  ['an invisible reason', stop({ reason: '\u200b' }), 'reason', invisible('200B')],
  ['a reason of two lines', stop({ reason: 'Two\nlines' }), 'reason', control],
  ['a choice that is neither true nor false', stop({ cancelQueuedCalls: 'yes' }), 'cancelQueuedCalls', 'Must be true or false.'],
  ...[1_001, '1', 0.09, Number.NaN].map((perSecond): (typeof wrong)[number] => [
    `a pace of ${JSON.stringify(perSecond)} per second`,
    pace({ perSecond }),
    'perSecond',
    'Must be a number from 0.1 to 1000, or null.',
  ]),
  ...[0, 1.5, '4', 100_001].map((liveCalls): (typeof wrong)[number] => [
    `${JSON.stringify(liveCalls)} live calls`,
    pace({ liveCalls }),
    'liveCalls',
    'Must be a whole number from 1 to 100000, or null.',
  ]),
  ['a pace without live calls', pace({ liveCalls: undefined }), 'liveCalls', required],
  ...(
    [
      ['calls', [0, 101, '3'], 'Must be a whole number from 1 to 100.'],
      ['days', [0, 31], 'Must be a whole number from 1 to 30.'],
      ['minutesBetween', [-1, 43_201], 'Must be a whole number from 0 to 43200.'],
    ] as const
  ).flatMap(([field, values, message]): typeof wrong => [
    ...values.map((value): (typeof wrong)[number] => [
      `a contact limit with ${field} ${JSON.stringify(value)}`,
      contactLimits({ [field]: value }),
      field,
      message,
    ]),
    [`a contact limit without ${field}`, contactLimits({ [field]: undefined }), field, required],
  ]),
  ['a setting named __proto__', settings(proto), 'settings', "A setting can't be named __proto__."],
  ['two settings whose names differ only in spaces', settings({ a: '', 'a ': '' }), 'settings', 'Each setting must have another name.'],
  ['21 settings', settings(manyVariables(21)), 'settings', 'Must have at most 20 settings.'],
  ['a setting of 1,001 characters', settings({ a: 'x'.repeat(1_001) }), 'settings.a', atMost(1000)],
  ['a number as a setting', settings({ a: 1 }), 'settings.a', 'Must be a string.'],
  ...[
    ['', 'Must have a name.'],
    ['n'.repeat(65), atMost(64)],
    ['agent\n2', control],
    ['agent\u202E', invisible('202E')],
    ['a\u200Bgent', invisible('200B')],
  ].map(([name = '', message = '']): (typeof wrong)[number] => [
    `a setting named ${JSON.stringify(name)}`,
    settings({ [name]: 'x' }),
    `settings.${name}`,
    message,
  ]),
  ['a change of nothing about a user', [changeUserSchema, {}], '', 'Must contain name, disabled or accountId.'],
  ['an unknown action', [routes.listActivity.query, { action: 'api-key.eaten' }], 'action', `Must be one of ${auditActions.join(', ')}.`],
  ['an unknown call state', [callsQuerySchema, { state: 'ringing' }], 'state', states],
  ['a search with a control character', search('\0'), 'search', control],
  ['a search with a lone surrogate', search('a\uD83D'), 'search', surrogate],
  ['a search of 201 characters', search('😀'.repeat(201)), 'search', `${atMost(200)} Shorten it.`],
  ['an unknown outcome', [outcomeSchema, { ...outcome, state: 'unknown' }], 'state', 'Must be one of completed, no_answer, busy, failed.'],
];

const ada = { email: 'ada@example.com', password: ' a ' };
const right: [what: string, input: Input, data?: unknown][] = [
  ['a phone number between invisible characters', contact({ phone: `\u202A${phone}\u202C` }), contact({})[1]],
  ['a request ID of 128 characters', call({ requestId: `A9._~-:${'a'.repeat(121)}` })],
  ['a request ID of three dots', call({ requestId: '...' })],
  ['50 variables', variables(manyVariables(50))],
  ['a variable with line breaks and tabs', variables({ a: 'b\r\n\tc' })],
  ['a time window', call({ notBefore: before, notAfter: nine })],
  ['a time of 30 characters', call({ notBefore: '2026-11-21T09:00:00.000000000Z' })],
  ['an expiration in five years', newKey({ expiration: { kind: 'years', years: 5 } })],
  ['an email address in mixed case', newUser({ email: ' Ada@Example.COM ' }), newUser({})[1]],
  ['an email address of 254 characters', newUser({ email: `a@${'b'.repeat(252)}` })],
  ['a password of 8 emoji', [newPasswordSchema, '😀'.repeat(8)]],
  ['a password of 128 characters', [newPasswordSchema, 'x'.repeat(128)]],
  ['sign-in credentials', [signInSchema, { ...ada, email: ' Ada@Example.com' }], ada],
  ['passwords with spaces', [changePasswordSchema, { currentPassword: ' ', newPassword: '12345678' }]],
  ['no tenancy', [selectTenancySchema, { kind: null }]],
  ['no choice for queued calls', [revokeQuerySchema, {}], { cancelQueuedCalls: false }],
  ['a request to cancel queued calls', [revokeQuerySchema, { cancelQueuedCalls: 'true' }], { cancelQueuedCalls: true }],
  ['100 keys', [revokeApiKeysSchema, { ids: ids(100) }], { ids: ids(100), cancelQueuedCalls: false }],
  ['an uppercase digest', [identifyApiKeySchema, { sha256: 'A'.repeat(64) }]],
  ['12 windows of a prefix on a weekday', windows(12, () => ({ days: ['mon'] }))],
  ['13 windows on a day, of two prefixes', windows(13, (n) => ({ prefix: n === 0 ? '+49' : '', days: ['mon'] }))],
  ['13 windows of a prefix, on two days', windows(13, (n) => ({ days: [n === 0 ? 'sun' : 'mon'] }))],
  ['a setting', settings({ agent: 'nora' })],
  ['no search text', [tenanciesQuerySchema, {}], { search: '' }],
  ['a search of 200 emoji', search('😀'.repeat(200))],
  ['an outcome', [outcomeSchema, { ...outcome, detail: 'x'.repeat(500), durationSeconds: 0 }]],
];

describe('input', () => {
  for (const [what, [schema, input], path, message] of wrong) {
    it(`with ${what} is rejected with a message that says what to do`, () => {
      const refused = { ok: false, errors: [{ path, message }] };
      expect(validate(schema, input)).to.deep.equal(refused);
      if (schema === placeCallSchema) expect(validatePlaceCall(input)).to.deep.equal(refused);
    });
  }

  for (const [what, [schema, input], data = input] of right) {
    it(`with ${what} is accepted`, () => expect(validate(schema, input)).to.deep.equal({ ok: true, data }));
  }
});
