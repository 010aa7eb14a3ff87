import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { exampleCall } from '../../../desktop/renderer/screens/api-keys/snippets.ts';

describe('the command that places a call', () => {
  const command = exampleCall('https://calls.example.com/', 'c1', 'test-1');

  it('goes to the campaign on the server, with a request ID and a number that nobody has', () => {
    expect(command).to.include('curl https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand ');
    expect(command).to.include(`'{"requestId":"test-1","contact":{"phone":"+12025550143"}}'`);
  });

  it('asks for the key, and gives it to curl as a header that no list of processes shows', () => {
    // In the place of curl, which shows its arguments and its input.
    const stand = `curl() { printf '%s\\n' "$@"; cat; }`;
    const shown = execFileSync('bash', ['-c', `${stand}\n${command}`], { input: 'svc_sk_live_some\n', encoding: 'utf8' });
    const [asked, ...lines] = shown.split('\n');
    expect(asked).to.equal('API key: https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand');
    expect(lines).to.deep.equal([
      ...['-H', '@-', '-H', 'Content-Type: application/json', '-d', '{"requestId":"test-1","contact":{"phone":"+12025550143"}}'],
      'X-API-Key: svc_sk_live_some',
    ]);
  });

  it('names a campaign that is not known yet', () => {
    expect(exampleCall('https://calls.example.com', '{campaignId}', 'test-1')).to.include('/campaigns/{campaignId}/');
  });
});
