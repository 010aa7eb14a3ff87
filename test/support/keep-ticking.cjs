// Loaded into Electron before the console. Node.js can be interrupted by a message from Playwright just before it notes that the queue of
// process.nextTick() is empty. If the message adds to the queue, Node.js never looks at it again, so streams stop, and so do the page's
// files. That happened with about every hundredth message, and on a busy machine at every seventh start. A rejection has the queue looked at.
setInterval(() => Promise.reject(new Error()).catch(() => undefined), 50).unref();
