import sqlite3 from 'sqlite3';

/** Holds a SQLite file's write lock, like another process. @returns a function that releases it */
export async function holdWriteLock(database: string): Promise<() => Promise<void>> {
  const holder = new sqlite3.Database(database.slice('sqlite:'.length));
  const execute = (sql: string) => new Promise<void>((resolve, reject) => holder.exec(sql, (error) => (error ? reject(error) : resolve())));
  await execute('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE');
  return async () => {
    await execute('ROLLBACK');
    await new Promise((resolve) => holder.close(resolve));
  };
}
