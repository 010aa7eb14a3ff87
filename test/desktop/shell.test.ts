import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { commands } from '../../desktop/ipc.ts';
import { screens, shortcutAt, showCommand } from '../../desktop/screens.ts';
import { electronFile } from '../../scripts/support/electron-runtime.ts';
import { consoleArgs, consoleEnvironment, describeDesktop, launchConsole, watchOver } from '../support/electron.ts';
import { openOnce } from '../support/suites.ts';
import { until } from '../support/until.ts';

describeDesktop('the window', () => {
  const running = openOnce(() => launchConsole());

  it('has all of Electron’s restrictions', async () => {
    const preferences = await running.app.evaluate(({ BrowserWindow }) => {
      const contents = BrowserWindow.getAllWindows()[0]?.webContents as unknown as { getLastWebPreferences(): Record<string, unknown> };
      return contents.getLastWebPreferences();
    });
    expect(preferences).to.include({
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      nodeIntegrationInSubFrames: false,
      webSecurity: true,
      webviewTag: false,
      allowRunningInsecureContent: false,
      experimentalFeatures: false,
    });
    expect(preferences['enableBlinkFeatures'] ?? '').to.equal('');
  });

  for (const theme of ['dark', 'light'] as const) {
    it(`opens in the page’s own color without a flash if the system is ${theme}`, async () => {
      const colour = await running.app.evaluate(async ({ BrowserWindow, nativeTheme }, source) => {
        const updated = new Promise<void>((resolve) => nativeTheme.once('updated', () => resolve()));
        nativeTheme.themeSource = source;
        await updated;
        return BrowserWindow.getAllWindows()[0]?.getBackgroundColor();
      }, theme);
      await running.page.emulateMedia({ colorScheme: theme });
      const ground = await running.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const hex = [...ground.matchAll(/\d+/g)].map(([part]) => Number(part).toString(16).padStart(2, '0')).join('');
      expect(colour?.toLowerCase()).to.equal(`#${hex}`);
    });
  }

  it('offers the applicable editing commands on right-click', async () => {
    const offered = await running.app.evaluate(({ BrowserWindow, Menu }) => {
      const shown: string[][] = [];
      Menu.prototype.popup = function popup() {
        shown.push(this.items.filter(({ enabled, type }) => enabled && type !== 'separator').map(({ role }) => String(role)));
      };
      const contents = BrowserWindow.getAllWindows()[0]?.webContents;
      const editFlags = { canCut: false, canCopy: true, canPaste: true, canSelectAll: true };
      contents?.emit('context-menu', {}, { isEditable: true, selectionText: '', editFlags });
      contents?.emit('context-menu', {}, { isEditable: false, selectionText: 'a name', editFlags });
      contents?.emit('context-menu', {}, { isEditable: false, selectionText: '', editFlags });
      return shown;
    });
    expect(offered).to.deep.equal([['copy', 'paste', 'selectall'], ['copy']]);
  });

  describe('the menu', () => {
    before(async () => {
      await running.page.evaluate(
        async (all) => {
          const heard: string[] = [];
          Object.assign(window, { heard });
          window.callkey.onCommand((command) => heard.push(command));
          await window.callkey.offerCommands({ commands: all });
        },
        [...commands],
      );
      // Until the window has been shown and has the focus, Chromium drops the keys that a test sends.
      await until(() => running.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.isFocused() === true));
    });
    const heard = () =>
      running.page.evaluate(() => {
        const { heard: all } = window as unknown as { heard: string[] };
        return all.splice(0);
      });

    it('has a different letter for Alt in each menu, and for each item of a menu', async function () {
      if (process.platform === 'darwin') this.skip();
      const menus = await running.app.evaluate(({ Menu }) => {
        const bar = Menu.getApplicationMenu()?.items ?? [];
        return [bar, ...bar.map(({ submenu }) => submenu?.items ?? [])].map((items) =>
          items.flatMap(({ type, visible, label }) => (type !== 'separator' && visible ? [label] : [])),
        );
      });
      for (const labels of menus) {
        const letters = labels.map((label) => /&(\w)/.exec(label)?.[1]?.toLowerCase() ?? `none in ${label}`);
        expect(letters.filter((letter, index) => letter.length > 1 || letters.indexOf(letter) !== index)).to.deep.equal([]);
      }
    });

    it('sends each command once', async () => {
      await running.app.evaluate(({ Menu }) => {
        for (const { submenu } of Menu.getApplicationMenu()?.items ?? []) {
          for (const item of submenu?.items ?? []) {
            // These items of the Help menu aren't commands.
            if (item.type === 'normal' && !item.role && item.visible && !/Zones|Secrets|Diagnostics/.test(item.label)) item.click();
          }
        }
      });
      await running.page.waitForFunction((count) => (window as unknown as { heard: string[] }).heard.length >= count, commands.length - 2);
      // The window sends `close` when it is asked to close, and the app sends `lock`, so no menu item does.
      expect((await heard()).toSorted()).to.deep.equal(commands.filter((command) => !['close', 'lock'].includes(command)).toSorted());
    });

    const shortcuts = [
      ['CmdOrCtrl+N', 'new-api-key'],
      ['CmdOrCtrl+F', 'find'],
      ['CmdOrCtrl+R', 'refresh'],
      ['F5', 'refresh'],
      ['CmdOrCtrl+K', 'palette'],
      ...screens.map(({ name }, index) => [shortcutAt(index), showCommand(name)] as const),
    ] as const;
    const press = (keyCode: string, modifiers: ('control' | 'meta')[]) =>
      running.app.evaluate(
        ({ BrowserWindow }, [key, held]) => {
          const contents = BrowserWindow.getAllWindows()[0]?.webContents;
          for (const type of ['keyDown', 'keyUp'] as const) contents?.sendInputEvent({ type, keyCode: key, modifiers: [...held] });
        },
        [keyCode, modifiers] as const,
      );
    const untilCommand = () => running.page.waitForFunction(() => (window as unknown as { heard: string[] }).heard.length > 0);

    for (const [shortcut, command] of shortcuts) {
      it(`has ${shortcut} for ${command}`, async () => {
        const key = shortcut.replace('CmdOrCtrl+', '');
        await press(key, key === shortcut ? [] : [process.platform === 'darwin' ? 'meta' : 'control']);
        await untilCommand();
        expect(await heard()).to.deep.equal([command]);
      });
    }

    it("disables commands that aren't available", async () => {
      await running.page.evaluate(() => window.callkey.offerCommands({ commands: ['refresh'] }));
      const enabled = await running.app.evaluate(
        ({ Menu }, names) => names.filter((name) => Menu.getApplicationMenu()?.getMenuItemById(name)?.enabled),
        [...commands],
      );
      expect(enabled).to.deep.equal(['refresh']);
    });

    it('keeps commands while the page loads, and then delivers them in order', async () => {
      const { app, page } = running;
      await page.addInitScript(() => {
        const heard: string[] = [];
        Object.assign(window, { heard });
        window.callkey.onCommand((command) => heard.push(command));
      });
      await app.evaluate(({ BrowserWindow, Menu }) => {
        const contents = BrowserWindow.getAllWindows()[0]?.webContents;
        contents?.once('did-start-navigation', () => {
          for (const id of ['show-calls', 'find']) Menu.getApplicationMenu()?.getMenuItemById(id)?.click();
        });
      });
      await page.reload();
      await page.waitForFunction(() => (window as unknown as { heard: string[] }).heard.length >= 2);
      expect(await heard()).to.deep.equal(['show-calls', 'find']);
    });

    it("can't reload the page", async () => {
      const roles = await running.app.evaluate(({ Menu }) =>
        (Menu.getApplicationMenu()?.items ?? []).flatMap(({ submenu }) => submenu?.items.map(({ role }) => role ?? '') ?? []),
      );
      expect(roles).to.include.members([
        'undo',
        'cut',
        'copy',
        'paste',
        'selectall',
        'resetzoom',
        'zoomin',
        'zoomout',
        'togglefullscreen',
        'close',
      ]);
      expect(roles).not.to.include('reload').and.not.to.include('forcereload');
    });
  });

  describe('while a key value is visible', () => {
    before(async () => {
      await running.app.evaluate(({ BrowserWindow }) => {
        const [window] = BrowserWindow.getAllWindows();
        const protection: boolean[] = [];
        Object.assign(globalThis, { protection });
        // On Linux, the protection can't be read back.
        if (window) window.setContentProtection = (enable) => protection.push(enable);
      });
    });

    const protection = () => running.app.evaluate(() => (globalThis as unknown as { protection: boolean[] }).protection);
    /** Tries to create a key, which fails because no one is signed in. */
    const create = () =>
      running.page.evaluate(() => window.callkey.request('createApiKey', { name: 'a', expiration: { kind: 'none' }, timeZone: 'UTC' }));

    it("protects the window from screen capture from before the value arrives until it's gone", async () => {
      await create();
      expect(await protection()).to.deep.equal([true, false]);
    });
  });

  describe('when the app is started again', () => {
    it('is shown, and the second instance exits', async () => {
      await running.app.evaluate(({ BrowserWindow }) => {
        const [window] = BrowserWindow.getAllWindows();
        window?.hide();
        Object.assign(globalThis, { shown: new Promise<void>((resolve) => window?.once('show', () => resolve())) });
      });
      const second = watchOver(
        spawn(electronFile(), consoleArgs(running.userData), { env: await consoleEnvironment(), stdio: 'ignore', detached: true }),
      );
      expect(await once(second, 'exit')).to.deep.equal([0, null]);
      await running.app.evaluate(() => (globalThis as unknown as { shown: Promise<void> }).shown);
    });

    it('has the same bounds as before if it was closed', async () => {
      const bounds = { x: 120, y: 90, width: 900, height: 640 };
      await running.app.evaluate(({ BrowserWindow }, bounds) => {
        const [window] = BrowserWindow.getAllWindows();
        const resized = new Promise<void>((resolve) => window?.on('resize', () => resolve()));
        window?.setBounds(bounds);
        return resized;
      }, bounds);
      await running.close();
      const { app, close } = await launchConsole({ userData: running.userData });
      expect(await app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.getBounds())).to.deep.equal(bounds);
      await close();
    });
  });
});
