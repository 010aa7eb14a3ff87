import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { createProgram } from '../../cli/program.ts';
import { ndjson } from '../support/cli.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';

const schema = JSON.parse(readFileSync(new URL('../../cli/results.schema.json', import.meta.url), 'utf8'));
const ajv = new Ajv2020({ formats: { 'date-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ } }).addSchema(schema, 'results');

describe('the schema of results', () => {
  const its = sharedIntegrator();

  async function expectResults(definition: string, args: string[], input = ''): Promise<void> {
    const { stdout, stderr } = await its.home.run([...args, '--json'], { input });
    const results = definition === 'error' ? ndjson(stderr.trim().split('\n').at(-1) ?? '') : ndjson(stdout);
    expect(results.length, stderr).to.be.above(0);
    for (const result of results) {
      const isValid = ajv.validate(`results#/$defs/${definition}`, result);
      expect(isValid, `${args.join(' ')}: ${JSON.stringify(result)} ${ajv.errorsText()}`).to.equal(true);
    }
  }

  it('describes what every command prints', async () => {
    const campaign = its.tenants.campaign.id;
    const file = join(its.home.directory, 'contacts.csv');
    writeFileSync(file, `phone\n${somePhone()}\n12\n`);
    const fromFile = ['call', 'place', campaign, '--from', file, '--skip-invalid'];
    await expectResults('callToPlace', ['call', 'place', campaign, '--phone', somePhone(), '--dry-run']);
    await expectResults('placedCall', ['call', 'place', campaign, '--phone', somePhone()]);
    await expectResults('cancelledCall', ['call', 'cancel', campaign, '--last']);
    await expectResults('placedLine', fromFile);
    await expectResults('placedLine', [...fromFile, '--dry-run']);
    await expectResults('cancelledLine', ['call', 'cancel', campaign, '--from', file]);
    await expectResults('runs', ['call', 'runs']);
    const { stdout } = await its.home.run(['call', 'runs', '--json']);
    await expectResults('discarded', ['call', 'runs', 'discard', JSON.parse(stdout).runs[0].run]);
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

  it('refuses a result without its fields', () => {
    expect(ajv.validate('results', { line: 1, status: 'lost' })).to.equal(false);
  });
});
