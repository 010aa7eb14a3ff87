// Draws desktop/icon/icon.svg in every size that the systems need, into desktop/icon/png: `npm run icons`, or `xvfb-run npm run icons`
// without a display. It runs in Electron, so no other drawing program is needed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { app, BrowserWindow } from 'electron';

const folder = join(import.meta.dirname, '../desktop/icon');
const sizes = [16, 24, 32, 48, 64, 128, 256, 512, 1024];

async function draw(window: BrowserWindow, svg: string, size: number): Promise<Buffer> {
  const url: string = await window.webContents.executeJavaScript(`(async () => {
    const image = Object.assign(new Image(${size}, ${size}), { src: 'data:image/svg+xml,' + ${JSON.stringify(encodeURIComponent(svg))} });
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: ${size}, height: ${size} });
    canvas.getContext('2d').drawImage(image, 0, 0, ${size}, ${size});
    return canvas.toDataURL('image/png');
  })()`);
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}

async function drawAll(): Promise<void> {
  await app.whenReady();
  const window = new BrowserWindow({ show: false });
  await window.loadURL('about:blank');
  const svg = readFileSync(join(folder, 'icon.svg'), 'utf8');
  mkdirSync(join(folder, 'png'), { recursive: true });
  for (const size of sizes) writeFileSync(join(folder, 'png', `${size}x${size}.png`), await draw(window, svg, size));
  app.quit();
}

void drawAll();
