'use strict';
// Loaded before a server with `node --require`: it listens on loopback only, whatever it asks for, says on standard
// error which port it got, and exits when its standard input ends, as it does when whoever started it is gone.

const net = require('node:net');

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
  this.once('listening', () => process.stderr.write(`loopback port ${this.address().port}\n`));
  if (args[0] !== null && typeof args[0] === 'object') {
    args[0] = { ...args[0], host: '127.0.0.1' };
  } else {
    const done = args.findLast((arg) => typeof arg === 'function');
    args = [{ port: Number(args[0]), host: '127.0.0.1' }, ...(done ? [done] : [])];
  }
  return listen.apply(this, args);
};

process.stdin.on('end', () => process.exit(0)).resume();
