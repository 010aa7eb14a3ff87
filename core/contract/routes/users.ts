import { revokeQuerySchema } from '../console/api-keys.ts';
import { confirmedByCodeSchema } from '../console/session.ts';
import {
  changedUserSchema,
  changeUserSchema,
  createdUserSchema,
  createUserSchema,
  deletionQuerySchema,
  deletionSchema,
  givesAccess,
  resetPasswordSchema,
  usersQuerySchema,
  usersSchema,
} from '../console/users.ts';
import { route } from './route.ts';

const always = () => true;

export const userRoutes = {
  listUsers: route('GET', '/console/users', {
    by: 'session',
    summary: 'List users (partner users and staff only)',
    query: usersQuerySchema,
    answer: usersSchema,
    problems: ['forbidden'],
  }),
  createUser: route('POST', '/console/users', {
    by: 'session',
    summary: 'Create a user with a one-time password, which is returned only once',
    body: createUserSchema,
    confirm: always,
    answer: createdUserSchema,
    status: 201,
    secret: 'password',
    problems: ['forbidden', 'conflict', 'too-many-requests'],
  }),
  previewDeletion: route('GET', '/console/users/:id/deletion', {
    by: 'session',
    summary: 'Preview the effects of deleting a user',
    query: deletionQuerySchema,
    answer: deletionSchema,
    problems: ['forbidden'],
  }),
  changeUser: route('PATCH', '/console/users/:id', {
    by: 'session',
    summary: 'Rename, disable, enable or move a user (partner users and staff only)',
    body: changeUserSchema,
    confirm: givesAccess,
    answer: changedUserSchema,
    problems: ['forbidden', 'conflict', 'too-many-requests'],
  }),
  unlinkUser: route('DELETE', '/console/users/:id/link', {
    by: 'session',
    summary: 'Unlink a user from their identity at the provider, and end their sessions',
    body: confirmedByCodeSchema,
    confirm: always,
    problems: ['forbidden', 'conflict', 'too-many-requests'],
  }),
  deleteUser: route('DELETE', '/console/users/:id', {
    by: 'session',
    summary: 'Delete a user and their API keys and sessions',
    query: revokeQuerySchema,
    problems: ['forbidden', 'conflict'],
  }),
  resetPassword: route('POST', '/console/users/:id/password', {
    by: 'session',
    summary: "Reset a user's password to a one-time password and end their sessions",
    body: confirmedByCodeSchema,
    confirm: always,
    answer: resetPasswordSchema,
    secret: 'password',
    problems: ['forbidden', 'conflict', 'too-many-requests'],
  }),
  resetSecondFactor: route('DELETE', '/console/users/:id/second-factor', {
    by: 'session',
    summary: "Remove a user's second factor and end their sessions",
    body: confirmedByCodeSchema,
    confirm: always,
    problems: ['forbidden', 'conflict', 'too-many-requests'],
  }),
} as const;
