// Every tool of server-everything is called once, and the one that is to be had as a task in every way that the client has.

import { answers, tell, text } from './told.mjs';

const call = {
  echo: { message: 'hello' },
  'get-annotated-message': { messageType: 'success', includeImage: true },
  'get-env': {},
  'get-resource-links': { count: 2 },
  'get-resource-reference': { resourceType: 'Text', resourceId: 1 },
  'get-roots-list': {},
  'get-structured-content': { location: 'Chicago' },
  'get-sum': { a: 40, b: 2 },
  'get-tiny-image': {},
  'gzip-file-as-resource': { name: 'hello.gz', data: 'data:text/plain;base64,aGVsbG8=', outputType: 'resource' },
  'simulate-research-query': { topic: 'bridges' },
  'toggle-simulated-logging': {},
  'toggle-subscriber-updates': {},
  'trigger-elicitation-request': {},
  'trigger-long-running-operation': { duration: 0.1, steps: 2 },
  'trigger-sampling-request': { prompt: 'hello' },
  'trigger-url-elicitation': { url: 'https://example.org/' },
};

// play calls what is listed, one after the other. Each member of what it says is what the result is made of, or the error.
export async function play(peer) {
  for (const [method, answer] of Object.entries(answers([]))) peer.ask(method, answer);
  await peer.client.connect(peer.transport);
  const { tools } = await peer.client.listTools();
  for (const { name, execution } of tools.filter((t) => t.name.startsWith('every__'))) {
    const tool = name.replace('every__', '');
    await tell(name, async () => {
      if (!(tool in call)) throw new Error('nobody knows how to call it');
      const params = { name, arguments: call[tool] };
      const result = await (peer.task && execution?.taskSupport === 'required' ? peer.task(params) : peer.call(params, {}));
      return result.isError ? text(result) : result.content.map((c) => c.type).join(' ');
    });
    if (tool === 'simulate-research-query' && peer.task) {
      await tell('a task that asks', async () => /- \*\*Clarification\*\*: .*/.exec(text(await peer.task({ name, arguments: { topic: 'moats', ambiguous: true } })))[0]);
    }
  }
}
