// A core loads this before its own code, so that a test sets its clock (clockInFile in core.ts).
import { readFileSync } from 'node:fs';

const { now } = Date;
const file = process.env['CLOCK_FILE'];
if (file !== undefined)
  Date.now = () => {
    const text = readFileSync(file, 'utf8');
    return Number(text) + (text.startsWith('+') ? now() : 0);
  };
