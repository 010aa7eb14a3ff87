import type { CoreOptions } from './core.ts';
import { type CoreHarness, openCore } from './core-harness.ts';
import type { DatabaseKind } from './databases.ts';
import { startFront } from './front.ts';
import { startProvider, type TestProvider } from './oidc-provider.ts';
import { TestBrowser } from './test-browser.ts';

/** A core with tenants and a provider. @property url the PUBLIC_URL */
export type ProviderHarness = CoreHarness & { url: string; provider: TestProvider };

export async function openWithProvider({ environment, ...options }: { kind?: DatabaseKind } & CoreOptions = {}): Promise<ProviderHarness> {
  const front = await startFront();
  const provider = await startProvider([front.url]);
  const harness = await openCore({ ...options, environment: { ...provider.environment(front.url), ...environment } });
  front.leadTo(harness.core.url);
  return {
    ...harness,
    url: front.url,
    provider,
    async close() {
      await harness.close();
      await provider.close();
      await front.close();
    },
  };
}

/** Goes to the provider and back, without opening the callback. @returns the callback's URL */
export async function goToProvider({ url }: Pick<ProviderHarness, 'url'>, browser: TestBrowser, query = ''): Promise<string> {
  return browser.follow(`${url}/console/oidc${query}`, `${url}/console/oidc/callback`);
}

/** Signs in. @returns what the page's address says: `done`, or what went wrong */
export async function signInWithProvider(harness: Pick<ProviderHarness, 'url'>, browser = new TestBrowser(), query = ''): Promise<string> {
  const callback = await goToProvider(harness, browser, query);
  return finishSignIn(browser, callback);
}

/** Opens the callback like a browser that the provider has redirected there. */
export async function finishSignIn(browser: TestBrowser, callback: string): Promise<string> {
  const { result } = await openCallback(browser, callback);
  return result;
}

/** Signs in for the app. @returns the body of the request that hands this sign-in over */
export async function signInForApp(harness: Pick<ProviderHarness, 'url'>, browser: TestBrowser, query: string): Promise<{ flow: string }> {
  const { result, flow } = await openCallback(browser, await goToProvider(harness, browser, query));
  if (result !== 'app') throw new Error(`The sign-in ended with ${result}.`);
  return { flow };
}

async function openCallback(browser: TestBrowser, callback: string): Promise<{ result: string; flow: string }> {
  const answer = await browser.open(callback, { 'Sec-Fetch-Site': 'cross-site' });
  const [, result = `${answer.status} ${answer.text}`, flow = ''] =
    /\?sign-in=(\w+)(?:&flow=(\w+))?$/.exec(String(answer.headers['location'])) ?? [];
  return { result, flow };
}
