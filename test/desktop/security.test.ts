import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect } from 'chai';
import { startSite } from '../support/browser.ts';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';
import { until } from '../support/until.ts';

describeDesktop('the page', () => {
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
      'HTML from a string': async () => {
        document.createElement('div').innerHTML = '<b>not ours</b>';
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

  describe('navigation', () => {
    for (const path of ['/', 'https://example.com/', 'app://callkey/nothing', 'app://other/index.html']) {
      it(`blocks the page from navigating to ${path}`, async () => {
        await running.app.evaluate(({ BrowserWindow }) => {
          const stopped = new Promise((resolve) => {
            BrowserWindow.getAllWindows()[0]?.webContents.once('will-frame-navigate', (event) => resolve(event.defaultPrevented));
          });
          Object.assign(globalThis, { stopped });
        });
        await running.page.evaluate(
          (url) => {
            location.href = url;
          },
          path === '/' ? site.url : path,
        );
        expect(await running.app.evaluate(() => (globalThis as unknown as { stopped: Promise<boolean> }).stopped)).to.equal(true);
      });
    }

    for (const url of ['data:text/html,Not ours', 'file:///etc/hostname', 'javascript:document.write("Not ours")']) {
      it(`blocks the page from navigating to ${url}`, async () => {
        const title = await running.page.evaluate((address) => {
          location.href = address;
          return new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(document.title))));
        }, url);
        expect(title).to.equal('Callkey');
      });
    }

    it('blocks remote pages, even if the main process loads them', async () => {
      const load = (url: string) =>
        running.app.evaluate(async ({ BrowserWindow }, address) => {
          const window = new BrowserWindow({ show: false });
          const outcome = await window.loadURL(address).then(
            () => 'loaded',
            (error) => error.code,
          );
          window.destroy();
          return outcome;
        }, url);
      expect(await load(site.url)).to.equal('ERR_BLOCKED_BY_CLIENT');
      expect(await load('file:///etc/hostname')).to.equal('ERR_BLOCKED_BY_CLIENT');
      // Playwright notices a destroyed window a moment later.
      await until(() => running.app.windows().length === 1);
    });

    it('blocks opening a window', async () => {
      const openDialog = await running.page.evaluate(
        (url) => [window.open(url), window.open('about:blank'), window.open('app://callkey/index.html')].map((other) => other !== null),
        site.url,
      );
      expect(openDialog).to.deep.equal([false, false, false]);
    });

    it('blocks downloads', async () => {
      const downloads = await running.app.evaluate(({ session }, url) => {
        const begun = new Promise<boolean>((resolve) => {
          session.defaultSession.once('will-download', (event) => setImmediate(() => resolve(event.defaultPrevented)));
        });
        session.defaultSession.downloadURL('app://callkey/index.html');
        session.defaultSession.downloadURL(url);
        return begun;
      }, site.url);
      expect(downloads).to.equal(true);
    });
  });

  describe('external links', () => {
    const openDialog = (what: () => Promise<unknown>) => async () => {
      await running.app.evaluate(({ shell }) => {
        const addresses: string[] = [];
        Object.assign(globalThis, { openDialog: addresses });
        shell.openExternal = async (address) => void addresses.push(address);
      });
      await what();
      return running.app.evaluate(() => (globalThis as unknown as { openDialog: string[] }).openDialog);
    };

    it("open if they're on the list", async () => {
      const addresses = openDialog(() => running.page.evaluate(() => window.open('https://www.iana.org/time-zones')));
      expect(await addresses()).to.deep.equal(['https://www.iana.org/time-zones']);
    });

    it("don't open if they aren't on the list", async () => {
      const others = [
        site.url,
        'https://www.iana.org/',
        'http://www.iana.org/time-zones',
        'file:///etc/passwd',
        'mailto:a@example.com',
        'javascript:1',
      ];
      const addresses = openDialog(() => running.page.evaluate((urls) => urls.map((url) => window.open(url)?.closed), others));
      expect(await addresses()).to.deep.equal([]);
    });

    it('open from the Help menu', async () => {
      const addresses = openDialog(() =>
        running.app.evaluate(({ Menu }) => {
          for (const item of Menu.getApplicationMenu()?.items.at(-1)?.submenu?.items ?? [])
            if (item.type === 'normal' && !item.role && !/Diagnostics/.test(item.label)) item.click();
        }),
      );
      expect(await addresses()).to.deep.equal([
        'https://www.iana.org/time-zones',
        'https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html',
      ]);
    });
  });

  it('denies every permission that the page requests', async () => {
    const outcomes = await running.page.evaluate(async () => {
      const settle = (asked: () => Promise<unknown>) =>
        Promise.resolve()
          .then(asked)
          .then(
            (answer) => (typeof answer === 'string' ? answer : 'granted'),
            () => 'denied',
          );
      const asked: Record<string, () => Promise<unknown>> = {
        notifications: () => Notification.requestPermission(),
        camera: () => navigator.mediaDevices.getUserMedia({ video: true }),
        microphone: () => navigator.mediaDevices.getUserMedia({ audio: true }),
        screen: () => navigator.mediaDevices.getDisplayMedia(),
        place: () => new Promise((resolve, reject) => navigator.geolocation.getCurrentPosition(resolve, reject)),
        clipboard: () => navigator.clipboard.readText(),
        midi: () => navigator.requestMIDIAccess({ sysex: true }),
        usb: () => (navigator as unknown as { usb: { requestDevice(of: object): Promise<unknown> } }).usb.requestDevice({ filters: [] }),
      };
      const outcomes = Object.entries(asked).map(async ([name, ask]) => [name, await settle(ask)]);
      return Object.fromEntries(await Promise.all(outcomes));
    });
    expect(new Set(Object.values(outcomes)), JSON.stringify(outcomes)).to.deep.equal(new Set(['denied']));
  });

  it('denies every permission that the page checks', async () => {
    const states = await running.page.evaluate(async () => {
      const names = ['notifications', 'camera', 'microphone', 'geolocation', 'clipboard-read', 'clipboard-write', 'midi', 'idle-detection'];
      const query = async (name: string) => (await navigator.permissions.query({ name: name as PermissionName })).state;
      return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await query(name)])));
    });
    expect(new Set(Object.values(states)), JSON.stringify(states)).to.deep.equal(new Set(['denied']));
  });

  describe("the app's files", () => {
    const fetchStatus = (url: string, method = 'GET') =>
      running.app.evaluate(
        async ({ net }, [address, verb]) => {
          const answer = await net.fetch(address, { method: verb });
          return [answer.status, await answer.text()];
        },
        [url, method] as const,
      );

    it('are served', async () => {
      const [status, text] = await fetchStatus('app://callkey/index.html');
      expect(status).to.equal(200);
      expect(text).to.include('<title>Callkey</title>');
    });

    for (const [method, url] of [
      ...[
        '/',
        '/../main/main.js',
        '/%2e%2e/main/main.js',
        '/%2e%2e%2fmain%2fmain.js',
        '/..%5cmain%5cmain.js',
        '/assets/../../main/main.js',
        '//etc/passwd',
        '/file:///etc/passwd',
        '/index.html%00.js',
        '/INDEX.HTML',
        '/__proto__',
      ].map((path) => ['GET', `app://callkey${path}`] as const),
      ...['other', 'callkey.example.com', 'localhost'].map((host) => ['GET', `app://${host}/index.html`] as const),
      ...['POST', 'OPTIONS'].map((method) => [method, 'app://callkey/index.html'] as const),
    ])
      it(`aren't served for ${method} ${url}`, async () => {
        expect(await fetchStatus(url, method)).to.deep.equal([404, 'File not found.']);
      });
  });
});
