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
mock.addFixture({ match: { userMessage: 'Hello' }, response: { content: 'Hello, wörld. How are you?', usage: { prompt_tokens: 11, completion_tokens: 5, input_tokens: 11, output_tokens: 5, promptTokenCount: 11, candidatesTokenCount: 5 } } });
await mock.start();
process.stderr.write(`loopback port ${new URL(mock.url).port}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
