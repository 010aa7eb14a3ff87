import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { exampleCall } from '../../../desktop/renderer/state/api-keys.ts';

describe('the example command for placing a call', () => {
  const command = exampleCall('https://calls.example.com/', 'c1', 'test-1');

  it('uses the campaign and server, a request ID and an unassigned number', () => {
    expect(command).to.include('curl https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand ');
    expect(command).to.include(`'{"requestId":"test-1","contact":{"phone":"+493023125000"}}'`);
  });

  it("asks for the key, and passes it to curl as a header that doesn't show up in the process list", () => {
    // Replaces curl, and prints its arguments and input.
    const stand = `curl() { printf '%s\\n' "$@"; cat; }`;
    const shown = execFileSync('bash', ['-c', `${stand}\n${command}`], { input: 'svc_sk_live_some\n', encoding: 'utf8' });
    const [asked, ...lines] = shown.split('\n');
    expect(asked).to.equal('API key: https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand');
    expect(lines).to.deep.equal([
      ...['-H', '@-', '-H', 'Content-Type: application/json', '-d', '{"requestId":"test-1","contact":{"phone":"+493023125000"}}'],
      'X-API-Key: svc_sk_live_some',
    ]);
  });

  it('asks again after an empty line, such as a second Enter after pasting the command', () => {
    const shown = execFileSync('bash', ['-c', `curl() { cat; }\n${command}`], { input: '\n\nsvc_sk_live_some\n', encoding: 'utf8' });
    expect(shown).to.equal('API key: X-API-Key: svc_sk_live_some');
  });

  it("passes the server's address to curl unchanged, whatever it contains", () => {
    for (const server of ["https://calls.example.com/it's;x&$(id)`id`", 'http://[::1]:8080/a b', 'https://a.example/*?"']) {
      const shown = execFileSync('bash', ['-c', `curl() { printf '%s\n' "$1"; }\n${exampleCall(server, 'c1', 'test-1')}`], {
        input: 'x\n',
        encoding: 'utf8',
      });
      expect(shown.trim()).to.equal(`API key: ${server}/api/v1/campaigns/c1/contacts/on-demand`);
    }
  });

  it('has a placeholder for an unknown campaign', () => {
    expect(exampleCall('https://calls.example.com', '{campaignId}', 'test-1')).to.include('/campaigns/{campaignId}/');
  });
});
