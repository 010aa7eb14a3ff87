// The published command's entry. Checks the version first, because with an older Node.js, main.ts would fail with a stack trace.
import { minNodeVersion } from './min-node-version.ts';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > minNodeVersion.major || (major === minNodeVersion.major && minor >= minNodeVersion.minor)) {
  await import('./main.ts');
} else {
  process.stderr.write(
    `callkey needs Node.js ${minNodeVersion.major}.${minNodeVersion.minor} or later; this is ${process.versions.node}.\n`,
  );
  process.exitCode = 2;
}
