// A Postgres server on loopback, made of PGlite: Postgres in WebAssembly, with pgvector unless the first word is "bare". It
// says on standard error which port it got, and exits when its standard input ends, as it does when whoever started it is gone.

import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

const extensions = process.argv[2] === 'bare' ? {} : { vector };
const db = await PGlite.create({ extensions });
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 50 });
await server.start();
process.stderr.write(`loopback port ${server.getServerConn().split(':').at(-1)}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
