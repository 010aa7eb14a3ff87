import { z } from 'zod';
import { placeCallPath } from '../headers.ts';
import { limits } from '../limits.ts';
import { routeBy } from '../route.ts';
import { isObject } from '../text/json.ts';
import { dropInvisible, identifierSchema, inputInstantSchema, instantSchema, lineSchema, namedTexts, textSchema } from '../text/text.ts';
import { findTimeZone, timeZoneSchema } from '../time-zones.ts';
import { type Validated, validate } from '../validate.ts';
import { isPhoneNumber, notE164 } from './phone.ts';

// These exports are in separate files so that the console doesn't load the numbering plans of all countries at startup.
export * from '../headers.ts';
export * from './states.ts';

// Clients and proxies remove `.` and `..` from a path, so a request to cancel such a call would go to a different path.
const requestIdForm = /^(?!\.{1,2}$)[A-Za-z0-9._~:-]{1,128}$/;

/** The rule, worded to follow "Must be" in messages. */
export const requestIdRule = '1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or ".."';

export function isRequestId(text: string): boolean {
  return requestIdForm.test(text);
}

export const requestIdSchema = z.string().regex(requestIdForm, { error: `Must be ${requestIdRule}.` });

const phoneSchema = z.string().overwrite(dropInvisible).refine(isPhoneNumber, { error: notE164 }).meta({
  pattern: '^\\+[1-9]\\d{1,14}$',
  description: "A phone number in E.164 format that's valid in the numbering plan for its country code.",
});

const contactSchema = z.strictObject({
  phone: phoneSchema,
  name: lineSchema(limits.name).optional(),
  timeZone: timeZoneSchema.optional(),
});

const variableNameForm = /^[^\p{Cc}\p{Cs}]{1,64}$/u;

const variablesSchema = namedTexts('variable', limits.variables)
  .pipe(
    z.record(
      z.string().regex(variableNameForm, { error: `Must be 1 to ${limits.variableName} characters, without control characters.` }),
      textSchema(limits.variableValue),
    ),
  )
  // The generated JSON Schema describes a pipe's input. This pipe accepts any input, so describe the variables here.
  .meta({
    type: 'object',
    maxProperties: limits.variables,
    propertyNames: { pattern: variableNameForm.source },
    additionalProperties: { type: 'string', maxLength: limits.variableValue },
  });

export const placeCallSchema = z
  .strictObject({
    requestId: requestIdSchema.optional(),
    contact: contactSchema,
    variables: variablesSchema.optional(),
    notBefore: inputInstantSchema.optional().meta({ description: "The call isn't dialed before this time." }),
    notAfter: inputInstantSchema
      .optional()
      .meta({ description: "A call that hasn't been dialed by this time lapses. Must be in the future, and after notBefore." }),
  })
  .refine(({ notBefore, notAfter }) => !notBefore || !notAfter || Date.parse(notBefore) < Date.parse(notAfter), {
    path: ['notAfter'],
    error: 'Must be after notBefore.',
  });
export type PlaceCall = z.infer<typeof placeCallSchema>;

/**
 * Validates a body against {@link placeCallSchema}. Skips the schema for most bodies, because it would take a fifth of the total time for a
 * call.
 */
export function validatePlaceCall(body: unknown): Validated<PlaceCall> {
  return isPlainPlaceCall(body) ? { ok: true, data: body } : validate(placeCallSchema, body);
}

/** Whether the schema is certain to accept a JSON value unchanged. It decides on anything rare or invalid. */
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
    if (field !== 'timeZone' || findTimeZone(value) !== value) return false;
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

/** Whether a text has no control or invisible characters and is in NFC. NFC doesn't change characters below U+0300 (UAX #15). */
function isPlainText(text: string, max: number): boolean {
  return text.length <= max && /^[ -~\u00A0-\u00AC\u00AE-\u02FF]*$/.test(text);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && !Array.isArray(value);
}

/** Never contains an outcome. */
export const placedCallSchema = z.object({
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  state: z.literal('queued'),
  placedAt: instantSchema,
  heldUntil: instantSchema.optional().meta({
    description: "The time until which calling hours delay the call; omitted if they don't. A repeated request returns the same time.",
  }),
});
export type PlacedCallView = z.infer<typeof placedCallSchema>;

export const cancelledCallSchema = z.object({
  requestId: z.string(),
  contactId: identifierSchema,
  campaignId: identifierSchema,
  state: z.literal('cancelled'),
  cancelledAt: instantSchema,
});
export type CancelledCallView = z.infer<typeof cancelledCallSchema>;

export const onDemandRoutes = {
  placeCall: routeBy('apiKey', 'POST', placeCallPath, {
    summary: 'Place a call. Repeating the same body with the same request ID returns the first response',
    body: placeCallSchema,
    answer: placedCallSchema,
    status: 202,
    problems: ['campaign-refused', 'do-not-call', 'outside-calling-hours', 'request-id-conflict', 'too-many-calls'],
  }),
  cancelCallByContact: routeBy('apiKey', 'DELETE', `${placeCallPath}/:contactId`, {
    summary: 'Cancel a call by its contact ID, before it is dialed',
    answer: cancelledCallSchema,
    problems: ['campaign-refused', 'call-not-found', 'already-dialed'],
  }),
  cancelCallByRequest: routeBy('apiKey', 'DELETE', `${placeCallPath}/by-request-id/:requestId`, {
    summary: 'Cancel a call by its request ID, before it is dialed',
    answer: cancelledCallSchema,
    problems: ['campaign-refused', 'call-not-found', 'already-dialed'],
  }),
} as const;
