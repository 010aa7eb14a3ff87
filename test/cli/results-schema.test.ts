import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { createProgram } from '../../cli/program.ts';
import { ndjson } from '../support/cli.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';

const text = readFileSync(new URL('../../cli/results.schema.json', import.meta.url), 'utf8');
const schema = JSON.parse(text);
/**
 * The schema, made stricter: it refuses fields that it doesn't describe. Other programs must accept such fields, since objects may gain
 * some.
 */
const complete = JSON.parse(text, (_, part) => (part?.properties ? { additionalProperties: false, ...part } : part));
const ajv = new Ajv2020({ formats: { 'date-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ } }).addSchema(complete, 'results');

const at = '2099-07-01T09:00:00.000Z';

describe('the results schema', () => {
  const its = sharedIntegrator();

  async function expectResults(definition: string, args: string[], input = ''): Promise<void> {
    const { stdout, stderr } = await its.home.run([...args, '--json'], { input });
    const schemas = { anyLine: 'results' }[definition] ?? `results#/$defs/${definition}`;
    const results = definition === 'error' ? ndjson(stderr.trim().split('\n').at(-1) ?? '') : ndjson(stdout);
    expect(results.length, stderr).to.be.above(0);
    for (const result of results) {
      const isValid = ajv.validate(schemas, result);
      expect(isValid, `${args.join(' ')}: ${JSON.stringify(result)} ${ajv.errorsText()}`).to.equal(true);
    }
  }

  const newestRun = async (): Promise<string> => JSON.parse((await its.home.run(['call', 'runs', '--json'])).stdout).runs[0].run;

  it('describes what every command prints', async () => {
    const campaign = its.tenants.campaign.id;
    const file = join(its.home.directory, 'contacts.csv');
    writeFileSync(file, `phone\n${somePhone()}\n12\n`);
    const fromFile = ['call', 'place', campaign, '--from', file, '--skip-invalid'];
    const times = `--not-before ${at} --not-after 2099-07-01T18:00:00.000Z`;
    const whole = `--phone ${somePhone()} --name Ada --time-zone Europe/Berlin --var a=b --request-id whole-1 ${times}`.split(' ');
    await expectResults('callToPlace', ['call', 'place', campaign, ...whole, '--dry-run']);
    await expectResults('placedCall', ['call', 'place', campaign, ...whole]);
    await expectResults('placedCall', ['call', 'place', campaign, ...whole]);
    await expectResults('cancelledCall', ['call', 'cancel', campaign, '--last']);
    const held = { requestId: 'held-1', contactId: 'c', campaignId: campaign, state: 'queued', ...{ placedAt: at, heldUntil: at } };
    its.network.faults.push({ status: 202, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(held) });
    await expectResults('placedCall', ['call', 'place', campaign, '--phone', somePhone(), '--request-id', 'held-1']);
    await expectResults('anyLine', [...fromFile, '--dry-run']);
    for (const code of ['request-id-conflict', 'do-not-call']) {
      its.network.faults.push({ status: 409, body: JSON.stringify({ type: `urn:x#${code}`, title: 'x', status: 409, detail: 'x' }) });
      await expectResults('placedLine', fromFile);
    }
    await expectResults('placedLine', fromFile);
    await expectResults('placedLine', [...fromFile, '--dry-run']);
    await expectResults('cancelledLine', ['call', 'cancel', campaign, '--from', file]);
    await expectResults('cancelledLine', ['call', 'cancel', '--run', await newestRun()]);
    await expectResults('runs', ['call', 'runs']);
    writeFileSync(file, `phone\n${somePhone()}\n`);
    await its.home.run(fromFile);
    await expectResults('discarded', ['call', 'runs', 'discard', await newestRun()]);
    await expectResults('key', ['key', 'set', '--insecure-storage'], its.key);
    await expectResults('key', ['key', 'status']);
    await expectResults('forgottenKey', ['key', 'forget']);
    await expectResults('alias', ['campaign', 'alias', 'reminders', campaign]);
    await expectResults('aliases', ['campaign', 'list']);
    await expectResults('forgottenAlias', ['campaign', 'forget', 'reminders']);
    await expectResults('checks', ['doctor', campaign]);
    await expectResults('completion', ['completion', 'bash']);
    await expectResults('manual', ['man']);
    await expectResults('error', ['call', 'place', campaign, '--phone', '12']);
  });

  it('names every command that prints results', () => {
    const described = JSON.stringify(Object.values(schema.$defs).map((part) => (part as { description: string }).description));
    const names = (command: ReturnType<typeof createProgram>, path = ''): string[] =>
      command.commands.flatMap((sub) => {
        const name = `${path} ${sub.name()}`.trim();
        return sub.commands.length > 0 ? [...(name === 'call runs' ? [name] : []), ...names(sub, name)] : [name];
      });
    const silent = ['mcp', 'complete'];
    for (const name of names(createProgram('0', () => Promise.resolve()))) {
      if (!silent.includes(name)) expect(described, name).to.contain(name);
    }
  });

  it('refuses a result with missing fields', () => {
    expect(ajv.validate('results', { line: 1, status: 'lost' })).to.equal(false);
  });
});
