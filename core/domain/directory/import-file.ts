import { z } from 'zod';
import { userTypeSchema } from '#contract/console/common.ts';
import { limits } from '#contract/limits.ts';
import { emailSchema, lineSchema } from '#contract/text/text.ts';

const externalIdSchema = lineSchema(limits.requestId);
const nameSchema = lineSchema(limits.name);

/** Partners, accounts, campaigns and users in one file. `externalId` is the ID of each in another system. */
export const importFileSchema = z.strictObject({
  partners: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema })).default([]),
  accounts: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema, partner: externalIdSchema })).default([]),
  campaigns: z.array(z.strictObject({ externalId: externalIdSchema, name: nameSchema, account: externalIdSchema })).default([]),
  users: z
    .array(
      z.strictObject({
        externalId: externalIdSchema,
        email: emailSchema,
        name: nameSchema,
        userType: userTypeSchema,
        account: externalIdSchema.optional(),
        partner: externalIdSchema.optional(),
        disabled: z.boolean().optional(),
      }),
    )
    .default([]),
});
export type ImportFile = z.output<typeof importFileSchema>;
