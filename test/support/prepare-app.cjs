// Loaded into Electron before the console. Without it, about every seventh start on a busy machine hangs: Playwright then attaches while
// the first window opens. This file holds "ready" until Playwright attaches and calls __playwright_run, as Playwright's own loader does.
// Playwright's loader also sets Chromium's switches, --password-store among them, and isn't used if the path of Electron is specified.
const { app, dialog, Notification } = require('electron');

const whenReady = app.whenReady();
const emit = app.emit.bind(app);
const { promise, resolve } = Promise.withResolvers();
let isReady = false;
let readyArgs = [];

app.whenReady = () => promise;
app.isReady = () => isReady;
app.emit = (event, ...args) => {
  if (event !== 'ready') return emit(event, ...args);
  readyArgs = args;
  return app.listenerCount('ready') > 0;
};
globalThis.__playwright_run = async () => {
  resolve(await whenReady);
  isReady = true;
  emit('ready', ...readyArgs);
};

// Node.js can also be interrupted by a message from Playwright just before it notes that the queue of process.nextTick() is empty. If the
// message adds to the queue, Node.js never looks at it again, so streams stop, including those of the page's files. That happened with
// about every hundredth message. A rejection makes Node.js look at the queue.
setInterval(() => Promise.reject(new Error()).catch(() => undefined), 50).unref();

// Keeps every message box for the tests, and chooses a button in it once a test has named one, from the start or later.
globalThis.chosenButton = process.env.CHOSEN_BUTTON;
globalThis.questions = [];
const { showMessageBox } = dialog;
dialog.showMessageBox = async (...args) => {
  const { message, detail, buttons } = args.at(-1);
  globalThis.questions.push({ message, detail, buttons });
  if (!globalThis.chosenButton) return showMessageBox.apply(dialog, args);
  return { response: buttons.indexOf(globalThis.chosenButton), checkboxChecked: false };
};

// Keeps the work that the app does only every few minutes, and the notifications that it shows, for the tests.
globalThis.slowWork = [];
globalThis.notices = [];
const { setInterval: every } = globalThis;
globalThis.setInterval = (run, ms, ...args) => {
  if (ms > 60_000) globalThis.slowWork.push(run);
  return every(run, ms, ...args);
};
Notification.prototype.show = function show() {
  globalThis.notices.push(new WeakRef(this));
};
