import { ipcMain, type WebContents } from 'electron';
import { z } from 'zod';
import { selectTenancySchema } from '#contract/console/session.ts';
import { parameterNames, type Route } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes.ts';
import { identifierSchema, lineSchema } from '#contract/text/text.ts';
import { exportNames, requestNames, toFields } from '../core-requests.ts';
import {
  type BridgeFunctions,
  commands,
  type ExportRequest,
  functionNames,
  maxServerLabel,
  type RequestInput,
  type RequestName,
  serverColors,
} from '../ipc.ts';
import { appOrigin } from './app-protocol.ts';

type Handler = (input: unknown) => Promise<unknown>;

/** Serves the bridge only to the app's page. @param page only its top frame is allowed to call */
export function serveBridge(bridge: BridgeFunctions, page: WebContents): void {
  const handlers = { ...bridge, request: ({ name, input }: Request) => bridge.request(name, input) };
  for (const name of Object.values(functionNames)) {
    const handler = handlers[name] as Handler;
    ipcMain.handle(name, async (event, input: unknown) => {
      if (!isOurPage(event.senderFrame, page)) throw new Error('This frame isn’t allowed to make calls.');
      const parsed = inputSchemas[name].safeParse(input);
      // The message doesn't include the input, because the input may be secret.
      if (!parsed.success) throw new Error(`Invalid input for ${name}.`);
      return handler(parsed.data);
    });
  }
}

/** Whether a frame is the console's page. Compares parts of the URL, because the `origin` of a custom scheme is the string "null". */
function isOurPage(frame: Electron.WebFrameMain | null, page: WebContents): boolean {
  if (!frame || frame.parent !== null || frame !== page.mainFrame) return false;
  const url = URL.parse(frame.url);
  return url !== null && `${url.protocol}//${url.host}` === appOrigin;
}

const text = z.string().max(10_000);
const nothing = z.undefined();

type Request = { name: RequestName; input: RequestInput<RequestName> };

/** Issues that only the core checks, so that the form shows the core's messages. */
const leftToCore: readonly string[] = ['too_small', 'too_big', 'invalid_format', 'custom'];

/** Whether an input has exactly the parameters and fields of the route, with the right types and none of them huge. */
function matchesRoute(route: Route, input: Readonly<Record<string, unknown>>): boolean {
  const { query, body } = toFields(route, input);
  const parsed = [(route.query ?? z.strictObject({})).safeParse(query), (route.body ?? z.strictObject({})).safeParse(body)];
  const issues = parsed.flatMap(({ error }) => error?.issues ?? []);
  const hasAllParameters = parameterNames(route.path).every((name) => identifierSchema.safeParse(input[name]).success);
  const isBounded = boundedFields.safeParse(input).success;
  return hasAllParameters && isBounded && issues.every(({ code }) => leftToCore.includes(code));
}

const boundedField: z.ZodType = z.lazy(() =>
  z.union([text, z.number(), z.boolean(), z.null(), z.undefined(), boundedFields, z.array(boundedField).max(1_000)]),
);
const boundedFields = z.record(text, boundedField);

const request = z
  .strictObject({ name: z.enum(requestNames), input: z.record(text, z.unknown()) })
  .refine(({ name, input }) => matchesRoute(consoleRoutes[name], input));

const csvName = z.string().regex(/^[\p{L}\p{N}-]{1,140}\.csv$/u);

const exportRequest = z
  .strictObject({ name: z.enum(exportNames), input: z.record(text, z.unknown()), file: csvName })
  .refine(({ name, input }) => matchesRoute(consoleRoutes[name], input))
  // The refinement above has checked the type of the input.
  .transform((request) => request as ExportRequest);

type InputSchemas = { readonly [Name in Exclude<keyof BridgeFunctions, 'request'>]: z.ZodType<Parameters<BridgeFunctions[Name]>[0]> };

const inputSchemas: InputSchemas & { readonly request: z.ZodType } = {
  getStartupState: nothing,
  awaitStorage: nothing,
  listServers: nothing,
  selectServer: text,
  readLink: text,
  markServer: z.strictObject({
    address: text,
    label: lineSchema(maxServerLabel).optional(),
    color: z.enum(serverColors).optional(),
  }),
  forgetServer: text,
  signIn: z.strictObject({ server: text, email: text, password: text, keepSignedIn: z.boolean().nullable() }),
  getSignInOptions: text,
  signInWithProvider: z.strictObject({ server: text, keepSignedIn: z.boolean().nullable(), staysOnPage: z.boolean() }),
  readSignInLink: nothing,
  openSignInLink: nothing,
  cancelSignIn: nothing,
  signOutOfProvider: text,
  confirmApp: nothing,
  enterCode: text,
  signOut: nothing,
  request,
  dismissSecret: nothing,
  setTenancy: selectTenancySchema,
  identifyApiKey: text,
  readClockLead: nothing,
  copySecret: text,
  holdsSecret: nothing,
  copyText: text,
  saveFile: z.strictObject({ name: csvName, text: z.string().max(50_000_000) }),
  saveSecret: z.strictObject({ name: z.string().regex(/^[a-z-]{1,40}\.(?:txt|env)$/), text }),
  saveExport: exportRequest,
  cancelExport: nothing,
  offerCommands: z.strictObject({ commands: z.array(z.enum(commands)).max(commands.length) }),
  closeWindow: nothing,
};
