import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect } from 'chai';
import { startSite } from '../support/browser.ts';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';

describeDesktop("the page's content security", () => {
  let running: RunningConsole;
  let site: Awaited<ReturnType<typeof startSite>>;
  before(async () => {
    site = await startSite();
    running = await launchConsole();
  });
  after(async () => {
    await running.close();
    site.close();
  });
  afterEach(() => {
    expect(site.requests, 'requests that reached the network').to.deep.equal([]);
    expect(running.page.url()).to.equal('app://callkey/index.html');
    expect(running.app.windows()).to.have.length(1);
  });

  describe('the content security policy', () => {
    it('has only the listed directives', async () => {
      const headers = await running.app.evaluate(async ({ net }) =>
        Object.fromEntries((await net.fetch('app://callkey/index.html')).headers),
      );
      expect(headers).to.deep.equal({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; " +
          "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
        'cache-control': 'no-store',
      });
    });

    const refused = {
      'an inline script': async () => {
        const script = document.createElement('script');
        script.append('window.didRun = true');
        document.body.append(script);
        script.remove();
        if (!('didRun' in window)) throw new Error('It did not run.');
      },
      'an inline event handler': async () => {
        const button = document.createElement('button');
        button.setAttribute('onclick', 'window.didRun = true');
        button.click();
        if (!('didRun' in window)) throw new Error('It did not run.');
      },
      'an inline style': async () => {
        const style = document.createElement('style');
        style.append('body { display: none }');
        document.head.append(style);
        const { display } = getComputedStyle(document.body);
        style.remove();
        if (display !== 'none') throw new Error('It does not apply.');
      },
      'a remote image': (url: string) =>
        new Promise<void>((resolve, reject) => {
          const image = new Image();
          image.onload = () => resolve();
          image.onerror = reject;
          image.src = `${url}/pixel`;
        }),
      'a remote script': (url: string) =>
        new Promise<void>((resolve, reject) => {
          const script = document.createElement('script');
          script.onload = () => resolve();
          script.onerror = reject;
          try {
            script.src = `${url}/script`;
          } catch (error) {
            reject(error);
          }
          document.body.append(script);
        }),
      'a request': (url: string) => fetch(url),
      'a request to the app itself': () => fetch('/index.html'),
      'a socket': (url: string) =>
        new Promise<void>((resolve, reject) => {
          const socket = new WebSocket(url.replace('http', 'ws'));
          socket.onopen = () => resolve();
          socket.onerror = reject;
        }),
      'an event source': (url: string) =>
        new Promise<void>((resolve, reject) => {
          const source = new EventSource(url);
          source.onopen = () => resolve();
          source.onerror = reject;
        }),
      'a worker': () =>
        new Promise<void>((resolve, reject) => {
          const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])));
          worker.onmessage = () => resolve();
          worker.onerror = reject;
        }),
      'a service worker': () => navigator.serviceWorker.register('/worker.js'),
      'HTML from a string': async () => {
        document.createElement('div').innerHTML = '<b>not ours</b>';
      },
      'a Trusted Types policy': async () => {
        (window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): void } }).trustedTypes.createPolicy('mine', {});
      },
    };
    for (const [what, attempt] of Object.entries(refused)) {
      it(`blocks ${what}`, async () => {
        const outcome = await running.page.evaluate<unknown, string>(attempt, site.url).then(
          () => 'done',
          () => 'refused',
        );
        expect(outcome).to.equal('refused');
      });
    }

    it('blocks evaluating a string', async () => {
      const outcome = await running.page.evaluate(
        () =>
          new Promise((resolve) => {
            setTimeout(() => {
              try {
                // biome-ignore lint/security/noGlobalEval: the test proves that this fails
                resolve(eval('"evaluated"'));
              } catch (error) {
                resolve((error as Error).name);
              }
            });
          }),
      );
      expect(outcome).to.equal('EvalError');
    });

    it('blocks submitting a form', async () => {
      await running.page.evaluate((url) => {
        const form = document.createElement('form');
        form.action = url;
        document.body.append(form);
        form.submit();
        form.remove();
      }, site.url);
    });

    it('blocks frames', async () => {
      const shown = await running.page.evaluate(async (url) => {
        const frames = [url, 'app://callkey/index.html'].map((src) => Object.assign(document.createElement('iframe'), { src }));
        const loaded = frames.map((frame) => new Promise((resolve) => frame.addEventListener('load', resolve)));
        document.body.append(...frames);
        await Promise.all(loaded);
        return frames.map((frame) => {
          const hasCallkey = frame.contentWindow !== null && frame.contentDocument !== null && 'callkey' in frame.contentWindow;
          frame.remove();
          return hasCallkey;
        });
      }, site.url);
      expect(shown).to.deep.equal([false, false]);
    });
  });

  it('blocks outgoing WebRTC connections', async () => {
    const socket = createSocket('udp4');
    const heard: Buffer[] = [];
    socket.on('message', (message) => heard.push(message));
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    await running.page.evaluate(async (port) => {
      const connection = new RTCPeerConnection({ iceServers: [{ urls: `stun:127.0.0.1:${port}` }] });
      connection.createDataChannel('out');
      const gathered = new Promise<void>((resolve) => {
        connection.onicegatheringstatechange = () => connection.iceGatheringState === 'complete' && resolve();
      });
      await connection.setLocalDescription(await connection.createOffer());
      await gathered;
      connection.close();
    }, socket.address().port);
    socket.close();
    expect(heard).to.deep.equal([]);
  });

  it("doesn't resolve host names", async () => {
    const outcome = await running.app.evaluate(({ session }) =>
      session.defaultSession.resolveHost('localhost').then(
        () => 'found',
        () => 'not found',
      ),
    );
    expect(outcome).to.equal('not found');
  });
});
