// A core loads this before its own code, so that a test sets its clock ahead (clockAhead in core.ts).
import { readFileSync } from 'node:fs';

const { now } = Date;
const file = process.env['CLOCK_FILE'];
if (file !== undefined) Date.now = () => now() + Number(readFileSync(file, 'utf8'));
