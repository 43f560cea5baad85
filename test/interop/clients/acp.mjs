// Holds sessions of an agent with the SDK of the Agent Client Protocol, and prints what it saw as one JSON object:
// node acp.mjs DIRECTORY COMMAND ARGUMENT...

import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const [cwd, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const exited = new Promise((resolve) => agent.on('exit', (code) => resolve(code)));
const seen = { updates: [], asked: [] };
let onUpdate = () => {};
const app = acp.client()
  .onRequest('session/request_permission', ({ params }) => {
    seen.asked.push(params);
    return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
  })
  .onNotification('session/update', ({ params }) => {
    seen.updates.push(params.update);
    onUpdate(params.update);
  });

await app.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (to) => {
  seen.initialize = await to.request('initialize', { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const servers = [{ name: 'of-the-editor', command: 'none', args: [], env: [{ name: 'TOKEN', value: 'hidden' }] }];
  const { sessionId, modes, configOptions } = await to.request('session/new', { cwd, mcpServers: servers });
  seen.modes = modes;
  seen.options = configOptions;
  const prompt = (text) => to.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  seen.write = await prompt('write the file');
  seen.turn = await prompt('hello');
  const set = (configId, value) => to.request('session/set_config_option', { sessionId, configId, value });
  seen.model = await set('model', 'test/other');
  seen.thinking = await set('thinking', 'low');
  seen.other = await prompt('hello');
  const begun = new Promise((resolve) => {
    onUpdate = (u) => u.sessionUpdate === 'agent_message_chunk' && resolve();
  });
  const slow = prompt('slow');
  await begun;
  await to.notify('session/cancel', { sessionId });
  seen.slow = await slow;
  seen.mode = await to.request('session/set_mode', { sessionId, modeId: 'plan' });
  await to.request('session/close', { sessionId });
  await to.request('session/close', { sessionId });
  const before = seen.updates.length;
  seen.list = await to.request('session/list', { cwd });
  seen.load = await to.request('session/load', { sessionId, cwd, mcpServers: [] });
  seen.replay = seen.updates.slice(before);
  seen.unknown = await to.request('session/load', { sessionId: 'none', cwd, mcpServers: [] }).catch((e) => e.message);
});
agent.stdin.end();
seen.exit = await exited;
process.stdout.write(JSON.stringify(seen) + '\n');
