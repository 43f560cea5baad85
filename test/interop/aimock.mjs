// The language models of four APIs on loopback, as @copilotkit/aimock speaks them. It says on standard error which port it
// got, and exits when its standard input ends, as it does when whoever started it is gone.

import { LLMock } from '@copilotkit/aimock';

const calls = ['a.txt', 'b.txt'].map((path) => ({ name: 'fs__read', arguments: JSON.stringify({ path }) }));
const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 7, logLevel: 'silent' });
mock.addFixture({
  match: { predicate: (r) => JSON.stringify(r.messages).includes('Read both') && r.messages.at(-1)?.role === 'tool' },
  response: { content: 'Both files are empty.' },
});
mock.addFixture({ match: { userMessage: 'Read both' }, response: { content: 'I look.', toolCalls: calls } });
mock.addFixture({ match: { userMessage: 'Think' }, response: { content: 'It is 42.', reasoning: 'Six times seven.' } });
mock.addFixture({
  match: { userMessage: 'Stop early' },
  response: { content: 'This text is long enough to be cut into many chunks.' },
  truncateAfterChunks: 3,
});
mock.addFixture({
  match: { userMessage: 'Once', sequenceIndex: 0 },
  response: { error: { message: 'Rate limited', type: 'rate_limit_error' }, status: 429 },
});
mock.addFixture({ match: { userMessage: 'Once' }, response: { content: 'Now it works.' } });

// Of the agent: calls of several tools at once and one after them, a call that takes long, and providers that fail.
const says = (text, more = () => true) => ({
  predicate: (r) => JSON.stringify(r.messages.filter((m) => m.role === 'user')).includes(text) && more(r),
});
const results = (r) => r.messages.filter((m) => m.role === 'tool').length;
const call = (name, input) => ({ name, arguments: JSON.stringify(input) });
mock.addFixture({
  match: says('Use all tools', (r) => results(r) === 0),
  response: {
    content: 'Three at once.',
    toolCalls: [
      call('read', { path: 'a.txt' }),
      call('fs__read_text_file', { path: 'a.txt' }),
      call('mem__create_entities', { entities: [{ name: 'Drawbridge', entityType: 'program', observations: ['carries messages'] }] }),
    ],
  },
});
mock.addFixture({ match: says('Use all tools', (r) => results(r) === 3), response: { toolCalls: [call('mem__read_graph', {})] } });
mock.addFixture({ match: says('Use all tools', (r) => results(r) === 4), response: { content: 'All tools work.' } });
mock.addFixture({
  match: says('Wait long', (r) => results(r) === 0),
  response: { toolCalls: [call('bash', { command: 'echo $$ > new; mv new began; sleep 600' })] },
});
mock.addFixture({
  match: { userMessage: 'Busy', sequenceIndex: 0 },
  response: { error: { message: 'Overloaded', type: 'overloaded_error' }, status: 529 },
});
mock.addFixture({ match: { userMessage: 'Busy' }, response: { content: 'Not busy any more.' } });
mock.addFixture({ match: says('Fall back', (r) => r.model === 'spare'), response: { content: 'The spare model answers.' } });
mock.addFixture({
  match: { userMessage: 'Fall back' },
  response: { error: { message: 'Internal error', type: 'api_error' }, status: 500 },
});
mock.addFixture({
  match: { userMessage: 'Cut for good' },
  response: { content: 'This text is long enough to be cut into many chunks.' },
  truncateAfterChunks: 3,
});
mock.addFixture({
  match: { userMessage: 'Too much' },
  response: { error: { message: 'prompt is too long: 250000 tokens > 200000 maximum', type: 'invalid_request_error' }, status: 400 },
});
mock.addFixture({ match: { userMessage: 'Hello' }, response: { content: 'Hello, wörld. How are you?', usage: { prompt_tokens: 11, completion_tokens: 5, input_tokens: 11, output_tokens: 5, promptTokenCount: 11, candidatesTokenCount: 5 } } });
await mock.start();
process.stderr.write(`loopback port ${new URL(mock.url).port}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
