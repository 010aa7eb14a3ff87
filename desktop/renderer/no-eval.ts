import { z } from 'zod';

// Otherwise zod tries whether it may compile code, which the page's policy refuses and reports.
z.config({ jitless: true });
