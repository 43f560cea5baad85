// The story that every client of the TypeScript SDK plays against the gateway.

import { answers, said, tell, text } from './told.mjs';

// heard collects notifications and can be waited for.
class Heard {
  #all = [];
  #wake = () => {};
  add(item) {
    this.#all.push(item);
    this.#wake();
  }
  clear() {
    this.#all = [];
  }
  // until gives the first item that fits, or ends in an error after ms.
  async until(fits, ms = 15000) {
    const end = AbortSignal.timeout(ms);
    for (;;) {
      const found = this.#all.find(fits);
      if (found !== undefined) return found;
      if (end.aborted) throw new Error(`nothing of the kind in ${ms} ms: ${JSON.stringify(this.#all)}`);
      await new Promise((wake) => {
        this.#wake = wake;
        end.addEventListener('abort', wake, { once: true });
      });
    }
  }
}

// play tells the story. The key tells its marks on the servers from those of others.
export async function play(peer, key) {
  const { client } = peer;
  const questions = [];
  const notes = { log: new Heard(), updated: new Heard(), tools: new Heard() };
  for (const [method, answer] of Object.entries(answers(questions))) peer.ask(method, answer);
  peer.hear('notifications/message', (n) => notes.log.add(n.params));
  peer.hear('notifications/resources/updated', (n) => notes.updated.add(n.params.uri));
  peer.hear('notifications/tools/list_changed', () => notes.tools.add('changed'));
  await client.connect(peer.transport);
  const call = (name, args = {}, options = {}, more = {}) => peer.call({ name, arguments: args, ...more }, options);

  await tell('protocol', () => peer.protocol());
  await tell('server', () => client.getServerVersion().name);
  await lists(client);
  await calls(client, call);
  for (const [step, name, args] of [
    ['elicit legacy', 'every__trigger-elicitation-request'],
    ['sample legacy', 'every__trigger-sampling-request', { prompt: 'hello' }],
    ['roots legacy', 'every__get-roots-list'],
    ['elicit sdk', peer.modern() ? 'sdk__test_input_required_result_elicitation' : 'sdk__test_elicitation', { message: 'hello' }],
    ['ask modern', 'gomodern__ask'],
    ['ask legacy', 'golegacy__ask'],
  ]) {
    questions.length = 0;
    await tell(step, async () => text(await call(name, args)));
    // server-everything asks for roots of its own accord too, in whichever step that comes.
    said[`${step}: questions`] = questions.filter((q) => q !== 'roots' || step.startsWith('ask'));
  }
  await inMidCall(call);
  await tell('log', async () => {
    const more = await peer.level('debug');
    await call('sdk__test_tool_with_logging', {}, {}, more);
    return (await notes.log.until((m) => m.data === 'Tool processing data')).level;
  });
  // The watched resource changes by itself. (mcp-go tells modern subscribers of no resource.)
  for (const [step, uri, touch] of [['subscribe sdk', 'test://watched-resource'], ['subscribe legacy', 'drawbridge+golegacy:peers://note', 'golegacy__touch']]) {
    await tell(step, async () => {
      const end = await peer.subscribe(uri);
      if (touch) await call(touch);
      const heard = await notes.updated.until((u) => u === uri);
      await end();
      return heard;
    });
  }
  for (const server of ['gomodern', 'golegacy']) await tell(`list changed ${server}`, () => grow(peer, call, notes.tools, server, key));
  await tell('cancel', () => cancel(call, 'gomodern', key));
  await tell('cancel legacy', () => cancel(call, 'golegacy', key));
}

async function lists(client) {
  const all = async (list, member) => {
    const items = [];
    for (let cursor; ; ) {
      const page = await client[list](cursor ? { cursor } : {});
      items.push(...page[member]);
      if (!(cursor = page.nextCursor)) return items.map((i) => i.uriTemplate ?? i.uri ?? i.name);
    }
  };
  await tell('tools', () => all('listTools', 'tools'));
  await tell('prompts', () => all('listPrompts', 'prompts'));
  await tell('resources', () => all('listResources', 'resources'));
  await tell('templates', () => all('listResourceTemplates', 'resourceTemplates'));
}

async function calls(client, call) {
  await tell('echo', async () => text(await call('every__echo', { message: 'hello' })));
  await tell('structured', async () => (await call('every__get-structured-content', { location: 'New York' })).structuredContent);
  await tell('content', async () => (await call('sdk__test_multiple_content_types')).content.map((c) => c.type));
  await tell('tool error', async () => (await call('sdk__test_error_handling')).isError);
  await tell('unknown tool', async () => text(await call('nobody__nothing')));
  await tell('read', async () => (await client.readResource({ uri: 'test://static-text' })).contents[0].text);
  await tell('prompt', async () => (await client.getPrompt({ name: 'gomodern__greet', arguments: { whom: 'Ada' } })).messages[0].content.text);
  await tell('complete', async () => {
    const ref = { type: 'ref/prompt', name: 'every__completable-prompt' };
    return (await client.complete({ ref, argument: { name: 'department', value: 'E' } })).completion.values;
  });
}

async function inMidCall(call) {
  for (const [step, name, args] of [
    ['progress legacy', 'every__trigger-long-running-operation', { duration: 0.2, steps: 4 }],
    ['progress sdk', 'sdk__test_tool_with_progress'],
    ['progress modern', 'gomodern__count'],
  ]) {
    await tell(step, async () => {
      const seen = [];
      await call(name, args, { onprogress: (p) => seen.push(`${p.progress}/${p.total}`) });
      return seen;
    });
  }
}

// grow has a server add a tool, and waits until the client is told and finds it. Others may have theirs grow too.
async function grow(peer, call, tools, server, key) {
  const name = `${server}__grown-${key}`;
  const end = await peer.listChanged();
  await call(`${server}__grow`, { key });
  for (let found = false; !found; ) {
    await tools.until(() => true);
    tools.clear();
    found = (await peer.client.listTools({})).tools.some((t) => t.name === name);
  }
  await end();
  return true;
}

// cancel gives up on a call and waits until its server has noticed.
async function cancel(call, server, key) {
  const stop = new AbortController();
  const outcome = call(`${server}__wait`, { key }, { signal: stop.signal }).then(() => 'answered', () => 'rejected');
  await counts(call, `${server}__waiting`, key);
  stop.abort('enough');
  await counts(call, `${server}__cancelled`, key);
  return outcome;
}

// counts polls until a tool says 1.
async function counts(call, name, key) {
  for (let tries = 0; tries < 200; tries++) {
    if ((await call(name, { key })).content[0].text === '1') return;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error(`${name} never said 1`);
}
