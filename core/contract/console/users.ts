import { z } from 'zod';
import { route } from '../route.ts';
import { emailSchema, identifierSchema, instantSchema } from '../text/text.ts';
import { revokeQuerySchema } from './api-keys.ts';
import { cursorSchema, directoryQuerySchema, flagSchema, namedSchema, nextCursorSchema, userTypeSchema } from './common.ts';
import { nameSchema } from './directory.ts';
import { confirmationCode, confirmedByCodeSchema, viewerSchema } from './session.ts';

export const userSchema = viewerSchema.extend({
  account: namedSchema.extend({ partnerName: z.string().optional() }).nullable(),
  createdAt: instantSchema,
  lastSignInAt: instantSchema.nullable(),
  /** When the user was disabled. Since then, the user and their keys have been refused. */
  disabledAt: instantSchema.nullable(),
  apiKeys: z.number().int(),
  /** The identity at the OpenID Connect provider that signs in as this user. */
  link: z.object({ issuer: z.string(), subject: z.string(), linkedAt: instantSchema }).nullable(),
  secondFactor: z.boolean(),
});

export type UserView = z.infer<typeof userSchema>;

export const usersSchema = z.object({ users: z.array(userSchema), nextCursor: nextCursorSchema });

export type UsersView = z.infer<typeof usersSchema>;

export const createUserSchema = z.strictObject({
  email: emailSchema,
  name: nameSchema,
  userType: userTypeSchema,
  /** By default, the account of the creator's scope, if the scope is a single account. */
  accountId: identifierSchema.optional(),
  /** By default, the partner of the creator's scope. */
  partnerId: identifierSchema.optional(),
  ...confirmationCode,
});

export const changeUserSchema = z
  .strictObject({
    name: nameSchema.optional(),
    /** Refuses the user and their keys, and ends their sessions. */
    disabled: z.boolean().optional(),
    /** Another account in the viewer's scope. Null removes a partner user's limit to one account. */
    accountId: identifierSchema.nullable().optional(),
    ...confirmationCode,
  })
  .refine(({ code, ...change }) => Object.keys(change).length > 0, { error: 'Must contain name, disabled or accountId.' });

export type ChangeUser = z.infer<typeof changeUserSchema>;

/** Whether a change lets a user back in, or lets them see other data than before. */
function givesAccess({ disabled, accountId }: ChangeUser): boolean {
  return disabled === false || accountId !== undefined;
}

export const changedUserSchema = z.object({ user: userSchema });

/** The password is shown only once, and the user has to change it. It's null if passwords are turned off. */
export const createdUserSchema = z.object({ user: userSchema, password: z.string().nullable() });

export const deletionSchema = z.object({
  /** The `apiKeys` in this object is the user's total number of keys. */
  user: userSchema,
  /** A page of keys, newest first. */
  apiKeys: z.array(
    z.object({
      id: identifierSchema,
      name: z.string(),
      lastUsedAt: instantSchema.nullable(),
      expired: z.boolean(),
      queuedCalls: z.number().int(),
    }),
  ),
  nextCursor: nextCursorSchema,
  sessions: z.number().int(),
});

export type DeletionView = z.infer<typeof deletionSchema>;

/** A new one-time password, shown only once. */
export const resetPasswordSchema = z.object({ password: z.string() });

const always = () => true;

export const userRoutes = {
  listUsers: route('GET', '/console/users', {
    summary: 'List users (partner users and staff only)',
    /** `away` lists only users who haven't signed in for 90 days or, if never, weren't created within these. */
    query: directoryQuerySchema.extend({ away: flagSchema }),
    answer: usersSchema,
    problems: ['forbidden'],
  }),
  createUser: route('POST', '/console/users', {
    summary: 'Create a user with a one-time password, which is returned only once',
    body: createUserSchema,
    confirm: always,
    answer: createdUserSchema,
    status: 201,
    secret: 'password',
    problems: ['forbidden', 'conflict'],
  }),
  previewDeletion: route('GET', '/console/users/:id/deletion', {
    summary: 'Preview the effects of deleting a user',
    query: z.strictObject({ cursor: cursorSchema }),
    answer: deletionSchema,
    problems: ['forbidden'],
  }),
  changeUser: route('PATCH', '/console/users/:id', {
    summary: 'Rename, disable, enable or move a user (partner users and staff only)',
    body: changeUserSchema,
    confirm: givesAccess,
    answer: changedUserSchema,
    problems: ['forbidden', 'conflict'],
  }),
  unlinkUser: route('DELETE', '/console/users/:id/link', {
    summary: 'Unlink a user from their identity at the provider, and end their sessions',
    body: confirmedByCodeSchema,
    confirm: always,
    problems: ['forbidden', 'conflict'],
  }),
  deleteUser: route('DELETE', '/console/users/:id', {
    summary: 'Delete a user and their API keys and sessions',
    query: revokeQuerySchema,
    problems: ['forbidden', 'conflict'],
  }),
  resetPassword: route('POST', '/console/users/:id/password', {
    summary: "Reset a user's password to a one-time password and end their sessions",
    body: confirmedByCodeSchema,
    confirm: always,
    answer: resetPasswordSchema,
    secret: 'password',
    problems: ['forbidden', 'conflict'],
  }),
  resetSecondFactor: route('DELETE', '/console/users/:id/second-factor', {
    summary: "Remove a user's second factor and end their sessions",
    body: confirmedByCodeSchema,
    confirm: always,
    problems: ['forbidden', 'conflict'],
  }),
} as const;
