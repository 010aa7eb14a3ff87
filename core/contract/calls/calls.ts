import { z } from 'zod';
import { isTimeZone, timeZoneSchema } from '../expiry.ts';
import { limits } from '../limits.ts';
import { givenInstantSchema, identifierSchema, instantSchema, lineSchema, textSchema } from '../text/text.ts';
import { type Validated, validate } from '../validate.ts';
import { isPhoneNumber } from './phone.ts';

// In files of their own for the console, which would otherwise load the plans of all telephone numbers at its start.
export * from '../headers.ts';
export * from './states.ts';

// Clients and proxies remove `.` and `..` from a path, and a cancel would go elsewhere.
const requestIdForm = /^(?!\.{1,2}$)[A-Za-z0-9._~:-]{1,128}$/;

/** What a request id is, to complete a sentence. */
export const requestIdRule = '1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or ".."';

export function isRequestId(text: string): boolean {
  return requestIdForm.test(text);
}

const requestIdSchema = z.string().regex(requestIdForm, { error: `Must be ${requestIdRule}.` });

const phoneSchema = z
  .string()
  .refine(isPhoneNumber, { error: 'Must be a phone number in E.164 format, such as +493012345678.' })
  .meta({ pattern: '^\\+[1-9]\\d{1,14}$', description: 'E.164 format, in a valid numbering plan.' });

const contactSchema = z.strictObject({
  phone: phoneSchema,
  name: lineSchema(limits.name).optional(),
  timeZone: timeZoneSchema.optional(),
});

const variableNameForm = /^[^\p{Cc}\p{Cs}]{1,64}$/u;

/** Looked at before each variable is: the record below passes over `__proto__` in silence, and thousands of bad ones take their time. */
const variablesShape = z
  .unknown()
  .refine((variables) => !isObject(variables) || !Object.hasOwn(variables, '__proto__'), {
    error: "A variable can't be named __proto__.",
  })
  .refine((variables) => !isObject(variables) || Object.keys(variables).length <= limits.variables, {
    error: `Must have at most ${limits.variables} variables.`,
  });

const variablesSchema = variablesShape
  .pipe(
    z.record(
      z.string().regex(variableNameForm, { error: `Must be 1 to ${limits.variableName} characters, without control characters.` }),
      textSchema(limits.variableValue),
    ),
  )
  // JSON Schema describes what goes into a pipe, and here that is anything.
  .meta({
    type: 'object',
    maxProperties: limits.variables,
    propertyNames: { pattern: variableNameForm.source },
    additionalProperties: { type: 'string', maxLength: limits.variableValue },
  });

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The body of a request that places a call. */
export const placeCallSchema = z
  .strictObject({
    requestId: requestIdSchema.optional(),
    contact: contactSchema,
    variables: variablesSchema.optional(),
    notBefore: givenInstantSchema.optional().meta({ description: "The call isn't dialed before this time." }),
    notAfter: givenInstantSchema
      .optional()
      .meta({ description: "A call that hasn't been dialed by this time lapses. Must be in the future, and after notBefore." }),
  })
  .refine(({ notBefore, notAfter }) => !notBefore || !notAfter || Date.parse(notBefore) < Date.parse(notAfter), {
    path: ['notAfter'],
    error: 'Must be after notBefore.',
  });
export type PlaceCall = z.infer<typeof placeCallSchema>;

/** Checks against {@link placeCallSchema}, most bodies without it: the schema takes as long as a fifth of all that is done for a call. */
export function validatePlaceCall(body: unknown): Validated<PlaceCall> {
  return isPlainPlaceCall(body) ? { ok: true, data: body } : validate(placeCallSchema, body);
}

/** Whether the schema is known to take a JSON value as it is. Leaves all that is rare or wrong to the schema. */
function isPlainPlaceCall(body: unknown): body is PlaceCall {
  if (!isRecord(body) || !isPlainContact(body['contact'])) return false;
  for (const field in body) {
    const value = body[field];
    if (field === 'contact' || (field === 'variables' && isPlainVariables(value))) continue;
    if (field !== 'requestId' || typeof value !== 'string' || !isRequestId(value)) return false;
  }
  return true;
}

function isPlainContact(contact: unknown): contact is PlaceCall['contact'] {
  if (!isRecord(contact) || contact['phone'] === undefined) return false;
  for (const field in contact) {
    const value = contact[field];
    if (typeof value !== 'string') return false;
    if (field === 'phone' && isPhoneNumber(value)) continue;
    if (field === 'name' && value !== '' && isPlainText(value, limits.name) && value.trim() === value) continue;
    if (field !== 'timeZone' || !isTimeZone(value)) return false;
  }
  return true;
}

function isPlainVariables(variables: unknown): variables is Record<string, string> {
  if (!isRecord(variables)) return false;
  let count = 0;
  for (const name in variables) {
    const value = variables[name];
    if (++count > limits.variables || name === '' || name === '__proto__' || !isPlainText(name, limits.variableName)) return false;
    if (typeof value !== 'string' || !isPlainText(value, limits.variableValue)) return false;
  }
  return true;
}

/** Without control and hidden characters, and in NFC, which changes no character below U+0300 (UAX #15). */
function isPlainText(text: string, max: number): boolean {
  return text.length <= max && /^[ -~\u00A0-\u02FF]*$/.test(text);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && !Array.isArray(value);
}

/** The answer to a placed call. It never carries an outcome. */
export const placedCallSchema = z.object({
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  state: z.literal('queued'),
  placedAt: instantSchema,
});
export type PlacedCallView = z.infer<typeof placedCallSchema>;

/** The answer to a cancelled call. */
export const cancelledCallSchema = z.object({
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  state: z.literal('cancelled'),
  cancelledAt: instantSchema,
});
export type CancelledCallView = z.infer<typeof cancelledCallSchema>;
