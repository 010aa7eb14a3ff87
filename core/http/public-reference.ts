import { readFileSync } from 'node:fs';
import { simulatedOutcomes } from '#contract/calls/simulated.ts';
import { limits } from '#contract/limits.ts';
import { type ProblemCode, problemCode, problemTable } from '#contract/problems.ts';

// The pages for integrators. The public listener serves them to anyone, so they describe only what a key can do.

/** The files are next to this folder in a checkout, and next to `lib` in the package that `npm run pack:core` builds. */
const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

const examples: Readonly<Record<string, string>> = {
  curl: 'place-call.sh',
  JavaScript: 'place-call.mjs',
  Python: 'place_call.py',
  PHP: 'place-call.php',
  Go: 'place_call.go',
  Java: 'PlaceCall.java',
  'C#': 'PlaceCall.cs',
  Ruby: 'place_call.rb',
};

/** Advice on the problems that a request with a key can get. Without an entry, the page shows the problem's title. */
const advice: Partial<Record<ProblemCode, string>> = {
  'malformed-request': 'Send valid JSON and a valid path.',
  unauthorized:
    'The key is missing, mistyped, revoked, expired or not accepted from this address, or the path or method is wrong: the response is always the same.',
  'campaign-refused': 'Check the campaign’s ID. The key has access only to its creator’s campaigns.',
  'call-not-found': 'The campaign doesn’t have a call with this ID. Check both IDs.',
  'request-id-conflict': 'Use a new request ID for a different call.',
  'already-dialed': 'It’s too late to cancel.',
  'too-large': 'Shorten the variables.',
  'unsupported-media-type': 'Send Content-Type: application/json.',
  invalid: 'Fix the fields listed in errors.',
  'do-not-call': 'The number is on a do-not-call list. Don’t repeat the request.',
  'outside-calling-hours': 'Calls to this contact aren’t allowed before notAfter. Choose a later notAfter.',
  'too-many-calls': 'The key has reached its daily call limit. Wait for Retry-After, or ask an administrator to raise the limit.',
  'too-many-requests': 'Wait for Retry-After, then repeat the request.',
  internal: 'Give the operator the X-Request-Id.',
  unavailable: 'Nothing happened. Wait for Retry-After, then repeat the request with the same request ID.',
};

type Page = { mediaType: string; text: string };

/** The path of the command line's package, so that an integrator who has only this server's address can install it. */
export const commandLinePath = '/reference/callkey-cli.tgz';

const installation = {
  served: { install: '"$CALLKEY_SERVER/reference/callkey-cli.tgz"', download: '' },
  missing: { install: './callkey-cli-VERSION.tgz', download: ' First, download its package from the Callkey release.' },
};

/** @param hasCommandLine whether the server also has {@link commandLinePath} */
export function readReference(hasCommandLine: boolean): ReadonlyMap<string, Page> {
  const document = onDemandDocument(JSON.parse(read('openapi.json')));
  const files = Object.values(examples).map((name) => [name, read(`reference/examples/${name}`)] as const);
  return new Map([
    ['/openapi.json', { mediaType: 'application/json', text: document }],
    ['/reference', { mediaType: 'text/html; charset=utf-8', text: referencePage(document, new Map(files), hasCommandLine) }],
    ['/reference/page.css', { mediaType: 'text/css; charset=utf-8', text: read('reference/page.css') }],
    ...files.map(([name, text]): [string, Page] => [`/reference/${name}`, { mediaType: 'text/plain; charset=utf-8', text }]),
  ]);
}

function referencePage(document: string, files: ReadonlyMap<string, string>, hasCommandLine: boolean): string {
  const values: Readonly<Record<string, string | number>> = {
    ...limits,
    ...installation[hasCommandLine ? 'served' : 'missing'],
    pageSizes: '',
    bodyBytes: limits.bodyBytes / 1024,
    problems: problemRows(document),
    outcomes: simulatedOutcomes.map(toOutcomeRow).join('\n'),
    examples: Object.entries(examples)
      .map(([language, file]) => {
        const code = escapeHtml(files.get(file) ?? '');
        return `<details><summary>${language}</summary>\n<p><a href="reference/${file}">${file}</a></p>\n<pre>${code}</pre></details>`;
      })
      .join('\n'),
  };
  const page = read('reference/page.html').replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(values[name]));
  // Let keyboard users scroll to the end of long lines.
  return page.replaceAll('<pre>', '<pre tabindex="0">');
}

function problemRows(document: string): string {
  const codes = Array.from(document.matchAll(/urn:callkey:problems#([\w-]+)/g), ([type]) => problemCode(type));
  return [...new Set(codes)]
    .flatMap((code) => (code ? [{ code, ...problemTable[code] }] : []))
    .toSorted((a, b) => a.status - b.status)
    .map(
      ({ code, status, title }) => `<tr><td>${status}</td><td><code>${code}</code></td><td>${escapeHtml(advice[code] ?? title)}</td></tr>`,
    )
    .join('\n');
}

function toOutcomeRow({ from, to, state, shortest, step }: (typeof simulatedOutcomes)[number]): string {
  const digits = `${String(from).padStart(2, '0')} to ${to}`;
  return `<tr><td>${digits}</td><td><code>${state}</code></td><td>${shortest} s</td><td>${step} s</td></tr>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

type OpenApi = {
  servers: unknown;
  tags: { name: string }[];
  paths: Record<string, unknown>;
  components: Record<string, Record<string, unknown>>;
  [field: string]: unknown;
};

function onDemandDocument({ webhooks: _, ...document }: OpenApi): string {
  const paths = Object.fromEntries(Object.entries(document.paths).filter(([path]) => path.startsWith('/api/')));
  const used = new Set<string>();
  const collect = (part: unknown) => {
    for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      if (used.has(`${kind}/${name}`)) continue;
      used.add(`${kind}/${name}`);
      collect(document.components[kind]?.[name]);
    }
  };
  collect(paths);
  used.add('securitySchemes/apiKey');
  const components = Object.fromEntries(
    Object.entries(document.components).map(([kind, parts]) => [
      kind,
      Object.fromEntries(Object.entries(parts).filter(([name]) => used.has(`${kind}/${name}`))),
    ]),
  );
  const tags = document.tags.filter(({ name }) => name === 'Calls');
  return `${JSON.stringify({ ...document, servers: [{ url: '.' }], tags, paths, components }, undefined, 2)}\n`;
}
