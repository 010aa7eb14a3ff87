import { z } from 'zod';

// Otherwise, zod tests whether it can compile code, which the page's policy blocks and reports.
z.config({ jitless: true });
