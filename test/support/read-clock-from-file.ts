// A core loads this before its own code, so that a test sets its clock: see clock-in-file.ts.
import { readFileSync } from 'node:fs';

const file = process.env['CLOCK_FILE'];
if (file !== undefined) Date.now = () => Number(readFileSync(file, 'utf8'));
