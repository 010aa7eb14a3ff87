import { expect } from 'chai';
import type { z } from 'zod';
import { placeCallSchema } from '#contract/calls/calls.ts';
import { outcomeSchema } from '#contract/calls/dialer.ts';
import { recordExportSchema } from '#contract/console/activity.ts';
import { createApiKeySchema, identifyApiKeySchema, revokeApiKeysSchema, revokeQuerySchema } from '#contract/console/api-keys.ts';
import { callsQuerySchema } from '#contract/console/calls.ts';
import {
  changePasswordSchema,
  newPasswordSchema,
  selectTenancySchema,
  signInSchema,
  tenanciesQuerySchema,
} from '#contract/console/session.ts';
import { createUserSchema } from '#contract/console/users.ts';
import { validate } from '#contract/validate.ts';

const phone = '+493012345678';
const key = { name: 'CRM', expiration: { kind: 'none' }, timeZone: 'UTC' };
const user = { email: 'ada@example.com', name: 'Ada', userType: 'staff' };
const outcome = { handoffId: 'h', state: 'busy' };
const ids = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`);
const variables = (count: number) => Object.fromEntries(ids(count).map((name) => [name, '']));
const placing = (more: object) => ({ contact: { phone }, ...more });
const control = 'Must not contain control characters.';
const surrogate = 'Must not contain half of a character (a lone surrogate). Type the text again instead of pasting it.';
const instant = 'Must be a time in UTC in RFC 3339 format, such as 2026-11-21T09:00:00.000Z.';
const email = 'Must be an email address.';
const identifier = 'Must be an ID of 1 to 64 letters, digits, hyphens and underscores.';
const requestId = 'Must be 1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or "..".';
const variableName = 'Must be 1 to 64 characters, without control characters.';
const states = 'queued, dialing, completed, no_answer, busy, failed, unknown, cancelled, lapsed, blocked';
const tenancy = 'Must be {"kind":"account" or "partner","id":…}, or {"kind":null} to clear the selection.';

const wrong: [what: string, schema: z.ZodType, input: unknown, path: string, message: string][] = [
  [
    'a phone number with spaces',
    placeCallSchema,
    { contact: { phone: '+49 30' } },
    'contact.phone',
    'Must be a phone number in E.164 format, such as +493012345678.',
  ],
  ['a request ID of 129 characters', placeCallSchema, placing({ requestId: 'x'.repeat(129) }), 'requestId', requestId],
  ['an empty request ID', placeCallSchema, placing({ requestId: '' }), 'requestId', requestId],
  ['a request ID with a space', placeCallSchema, placing({ requestId: 'a b' }), 'requestId', requestId],
  ['a request ID that would vanish from a URL path', placeCallSchema, placing({ requestId: '.' }), 'requestId', requestId],
  ['a request ID that would change a URL path', placeCallSchema, placing({ requestId: '..' }), 'requestId', requestId],
  [
    'an unknown contact time zone',
    placeCallSchema,
    { contact: { phone, timeZone: 'Mars' } },
    'contact.timeZone',
    'Must be an IANA time zone, such as Europe/Berlin.',
  ],
  [
    'an abbreviation as a contact time zone',
    placeCallSchema,
    { contact: { phone, timeZone: 'BST' } },
    'contact.timeZone',
    'Must be an IANA time zone, such as Europe/London for BST.',
  ],
  ['a contact without a name', placeCallSchema, { contact: { phone, name: ' ' } }, 'contact.name', 'Must not be empty.'],
  [
    'a name of 201 characters',
    placeCallSchema,
    { contact: { phone, name: 'x'.repeat(201) } },
    'contact.name',
    'Must be at most 200 characters.',
  ],
  ['a name with a line break', placeCallSchema, { contact: { phone, name: 'a\nb' } }, 'contact.name', control],
  ['51 variables', placeCallSchema, placing({ variables: variables(51) }), 'variables', 'Must have at most 50 variables.'],
  [
    'a variable named __proto__',
    placeCallSchema,
    JSON.parse(`{"contact":{"phone":"${phone}"},"variables":{"__proto__":"a"}}`),
    'variables',
    "A variable can't be named __proto__.",
  ],
  ['a variable without a name', placeCallSchema, placing({ variables: { '': 'a' } }), 'variables.', variableName],
  [
    'a variable name of 65 characters',
    placeCallSchema,
    placing({ variables: { ['x'.repeat(65)]: 'a' } }),
    `variables.${'x'.repeat(65)}`,
    variableName,
  ],
  ['a variable name with a control character', placeCallSchema, placing({ variables: { 'a\tb': 'a' } }), 'variables.a\tb', variableName],
  [
    'a variable of 1,001 characters',
    placeCallSchema,
    placing({ variables: { a: 'x'.repeat(1_001) } }),
    'variables.a',
    'Must be at most 1000 characters.',
  ],
  ['a variable with a control character', placeCallSchema, placing({ variables: { a: '\0' } }), 'variables.a', control],
  ['a date without a time', placeCallSchema, placing({ notBefore: '2026-11-21' }), 'notBefore', instant],
  ['a time without a zone', placeCallSchema, placing({ notBefore: '2026-11-21T09:00:00' }), 'notBefore', instant],
  ["a time that isn't in UTC", placeCallSchema, placing({ notBefore: '2026-11-21T09:00:00+01:00' }), 'notBefore', instant],
  ['a time of 31 characters', placeCallSchema, placing({ notAfter: '2026-11-21T09:00:00.0000000000Z' }), 'notAfter', instant],
  [
    'notAfter before notBefore',
    placeCallSchema,
    placing({ notBefore: '2026-11-21T09:00:00Z', notAfter: '2026-11-21T08:59:59Z' }),
    'notAfter',
    'Must be after notBefore.',
  ],
  [
    'notAfter at notBefore',
    placeCallSchema,
    placing({ notBefore: '2026-11-21T09:00:00Z', notAfter: '2026-11-21T09:00:00Z' }),
    'notAfter',
    'Must be after notBefore.',
  ],
  [
    'an unknown key time zone',
    createApiKeySchema,
    { ...key, timeZone: '+02:00' },
    'timeZone',
    'Must be an IANA time zone, such as Europe/Berlin.',
  ],
  [
    'an abbreviation as a key time zone',
    createApiKeySchema,
    { ...key, timeZone: 'IST' },
    'timeZone',
    'Must be an IANA time zone, such as Asia/Kolkata, Europe/Dublin, or Asia/Jerusalem for IST.',
  ],
  [
    'an invalid expiration date',
    createApiKeySchema,
    { ...key, expiration: { kind: 'custom', date: '31.1.2027' } },
    'expiration.date',
    'Must be a date in the format YYYY-MM-DD.',
  ],
  ['an unknown user type', createUserSchema, { ...user, userType: 'admin' }, 'userType', 'Must be account, partner or staff.'],
  ['a user without a type', createUserSchema, { ...user, userType: undefined }, 'userType', 'Must be account, partner or staff.'],
  ['an account ID with invalid characters', createUserSchema, { ...user, accountId: 'a b' }, 'accountId', identifier],
  ['an account ID of 65 characters', createUserSchema, { ...user, accountId: 'a'.repeat(65) }, 'accountId', identifier],
  ['an empty account ID', createUserSchema, { ...user, accountId: '' }, 'accountId', identifier],
  [
    'an email address with an invisible character',
    createUserSchema,
    { ...user, email: 'a\u00ad@b' },
    'email',
    'Must be an email address, without invisible characters. Remove U+00AD.',
  ],
  ...['ada', '@example.com', 'ada@', 'a da@example.com', 'ada@exam ple.com', 'a@b@c', `a@${'b'.repeat(253)}`, 'a\0@b'].map(
    (address): (typeof wrong)[number] => [
      `the email address ${address.slice(0, 20)}`,
      createUserSchema,
      { ...user, email: address },
      'email',
      email,
    ],
  ),
  ['a password of 7 characters', newPasswordSchema, '1234567', '', 'Must be at least 8 characters.'],
  ['a password of 129 characters', newPasswordSchema, 'x'.repeat(129), '', 'Must be at most 128 characters.'],
  ['an unknown kind of tenancy', selectTenancySchema, { kind: 'staff', id: 'a' }, '', tenancy],
  [
    'a value that is neither true nor false',
    revokeQuerySchema,
    { cancelQueuedCalls: 'yes' },
    'cancelQueuedCalls',
    'Must be true or false.',
  ],
  ['an empty list of keys', revokeApiKeysSchema, { ids: [] }, 'ids', 'Must contain at least one ID.'],
  ['101 keys', revokeApiKeysSchema, { ids: ids(101) }, 'ids', 'Must contain at most 100 IDs.'],
  [
    'half a digest',
    identifyApiKeySchema,
    { sha256: 'a'.repeat(63) },
    'sha256',
    'Must be the SHA-256 hash of the key value as 64 hexadecimal digits.',
  ],
  [
    'more than a digest',
    identifyApiKeySchema,
    { sha256: 'a'.repeat(65) },
    'sha256',
    'Must be the SHA-256 hash of the key value as 64 hexadecimal digits.',
  ],
  ['an unknown kind of list', recordExportSchema, { list: 'keys', rows: 0 }, 'list', 'Must be api-keys, calls, users or activity.'],
  ['an unknown call state', callsQuerySchema, { state: 'ringing' }, 'state', `Must be one of ${states}.`],
  ['a search with a control character', tenanciesQuerySchema, { search: '\0' }, 'search', control],
  ['a search with a lone surrogate', tenanciesQuerySchema, { search: 'a\uD83D' }, 'search', surrogate],
  [
    'a search of 201 characters',
    tenanciesQuerySchema,
    { search: '😀'.repeat(201) },
    'search',
    'Must be at most 200 characters. Shorten it.',
  ],
  ['a name with a lone surrogate', createApiKeySchema, { ...key, name: '\uDE00a' }, 'name', surrogate],
  ['a variable with a lone surrogate', placeCallSchema, placing({ variables: { a: '\uD83D' } }), 'variables.a', surrogate],
  ['an unknown outcome', outcomeSchema, { ...outcome, state: 'unknown' }, 'state', 'Must be one of completed, no_answer, busy, failed.'],
];

describe('input', () => {
  for (const [what, schema, input, path, message] of wrong) {
    it(`with ${what} is rejected with a message that says what to do`, () => {
      expect(validate(schema, input)).to.deep.equal({ ok: false, errors: [{ path, message }] });
    });
  }

  const right: [what: string, schema: z.ZodType, input: unknown, data: unknown][] = [
    ['50 variables', placeCallSchema, placing({ variables: variables(50) }), placing({ variables: variables(50) })],
    [
      'a variable with line breaks and tabs',
      placeCallSchema,
      placing({ variables: { a: 'b\r\n\tc' } }),
      placing({ variables: { a: 'b\r\n\tc' } }),
    ],
    [
      'a time window',
      placeCallSchema,
      placing({ notBefore: '2026-11-21T09:00:00Z', notAfter: '2026-11-21T09:00:01Z' }),
      placing({ notBefore: '2026-11-21T09:00:00Z', notAfter: '2026-11-21T09:00:01Z' }),
    ],
    [
      'a time of 30 characters',
      placeCallSchema,
      placing({ notBefore: '2026-11-21T09:00:00.000000000Z' }),
      placing({ notBefore: '2026-11-21T09:00:00.000000000Z' }),
    ],
    [
      'an expiration in five years',
      createApiKeySchema,
      { ...key, expiration: { kind: 'years', years: 5 } },
      { ...key, expiration: { kind: 'years', years: 5 } },
    ],
    ['an email address in mixed case', createUserSchema, { ...user, email: ' Ada@Example.COM ' }, user],
    [
      'an email address of 254 characters',
      createUserSchema,
      { ...user, email: `a@${'b'.repeat(252)}` },
      { ...user, email: `a@${'b'.repeat(252)}` },
    ],
    ['a password of 8 emoji', newPasswordSchema, '😀'.repeat(8), '😀'.repeat(8)],
    ['a password of 128 characters', newPasswordSchema, 'x'.repeat(128), 'x'.repeat(128)],
    ['sign-in credentials', signInSchema, { email: ' Ada@Example.com', password: ' a ' }, { email: 'ada@example.com', password: ' a ' }],
    [
      'passwords with spaces',
      changePasswordSchema,
      { currentPassword: ' ', newPassword: '12345678' },
      { currentPassword: ' ', newPassword: '12345678' },
    ],
    ['no tenancy', selectTenancySchema, { kind: null }, { kind: null }],
    ['no choice for queued calls', revokeQuerySchema, {}, { cancelQueuedCalls: false }],
    ['a request to cancel queued calls', revokeQuerySchema, { cancelQueuedCalls: 'true' }, { cancelQueuedCalls: true }],
    ['100 keys', revokeApiKeysSchema, { ids: ids(100) }, { ids: ids(100), cancelQueuedCalls: false }],
    ['an uppercase digest', identifyApiKeySchema, { sha256: 'A'.repeat(64) }, { sha256: 'A'.repeat(64) }],
    ['no search text', tenanciesQuerySchema, {}, { search: '' }],
    ['a search of 200 emoji', tenanciesQuerySchema, { search: '😀'.repeat(200) }, { search: '😀'.repeat(200) }],
    [
      'an outcome',
      outcomeSchema,
      { ...outcome, detail: 'x'.repeat(500), durationSeconds: 0 },
      { ...outcome, detail: 'x'.repeat(500), durationSeconds: 0 },
    ],
  ];
  for (const [what, schema, input, data] of right) {
    it(`with ${what} is accepted`, () => expect(validate(schema, input)).to.deep.equal({ ok: true, data }));
  }
});
