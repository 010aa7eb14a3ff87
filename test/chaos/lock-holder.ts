// Holds the write lock of a SQLite file until its standard input ends, as a shell with an open transaction does.
import { once } from 'node:events';
import sqlite3 from 'sqlite3';

const database = new sqlite3.Database(process.argv[2] ?? '');
const execute = (sql: string) => new Promise<void>((resolve, reject) => database.exec(sql, (error) => (error ? reject(error) : resolve())));
await execute('PRAGMA busy_timeout = 20000');
await execute('BEGIN IMMEDIATE');
process.stdout.write('locked\n');
process.stdin.resume();
await once(process.stdin, 'end');
await execute('ROLLBACK');
