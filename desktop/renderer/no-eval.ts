import { z } from 'zod';

// Without this setting, zod tests whether it can compile code, which the page's content security policy blocks and reports.
z.config({ jitless: true });
