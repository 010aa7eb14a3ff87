export type RevivedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
export type RevivedUser = { id: string; email: string; name: string; deletedAt: number };

/** The API keys that were revoked and the users who were deleted since the backup: a restore brings them back. */
export type Revived = { apiKeys: RevivedKey[]; users: RevivedUser[] };

export type RestoreResult = {
  /** Where the replaced database is now; null where there was none, or it is not kept. */
  before: string | null;
  /** Null where the replaced database cannot be read. */
  revived: Revived | null;
  /** The migrations that the backup lacks. */
  missing: string[];
};
