// The entry point of the published command. An older Node.js would fail while loading the imports, with a stack trace.
import { leastNode } from './least-node.ts';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > leastNode.major || (major === leastNode.major && minor >= leastNode.minor)) {
  await import('./main.ts');
} else {
  process.stderr.write(`callkey needs Node.js ${leastNode.major}.${leastNode.minor} or later; this is ${process.versions.node}.\n`);
  process.exitCode = 2;
}
