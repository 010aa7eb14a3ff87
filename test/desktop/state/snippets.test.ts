import { expect } from 'chai';
import { exampleCall } from '../../../desktop/renderer/state/snippets.ts';

describe('the command that places a call', () => {
  const command = exampleCall('https://calls.example.com/', 'c1');

  it('goes to the campaign on the server', () => {
    expect(command).to.include('curl https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand ');
  });

  it('takes the key from the environment: typed, it would stay in the history of the shell', () => {
    expect(command).to.include('"X-API-Key: $CALLKEY_API_KEY"');
  });

  it('names a campaign that is not known yet', () => {
    expect(exampleCall('https://calls.example.com', '{campaignId}')).to.include('/campaigns/{campaignId}/');
  });
});
