import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// In a folder of the project's own: in the shared temporary one, somebody else could have put code in its place.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/callkey', import.meta.url)));
// Only what is imported from here on is taken from the cache.
await import('./process.ts');
