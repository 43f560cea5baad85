// The language model of the sessions at a terminal, as @copilotkit/aimock speaks it on loopback. It says on standard error
// which port it got, and exits when its standard input ends.

import { LLMock } from '@copilotkit/aimock';

const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 12, logLevel: 'silent' });
const after = (prompt, content, more) =>
  mock.addFixture({
    match: {
      predicate: (r) =>
        r.messages.at(-1)?.role === 'tool' && JSON.stringify(r.messages.findLast((m) => m.role === 'user')).includes(prompt),
    },
    response: { content },
    ...more,
  });
const calls = (prompt, content, name, args) =>
  mock.addFixture({ match: { userMessage: prompt }, response: { content, toolCalls: [{ name, arguments: JSON.stringify(args) }] } });

after('Plan my garden', 'The plan is in **plan.md**:\n\n1. beans and peas after the frost\n2. tomatoes at the wall\n');
calls('Plan my garden', 'I write a plan with what you grow.', 'write', {
  path: 'plan.md',
  content: '# Garden\n\n- May: beans, peas\n- June: tomatoes, at the south wall\n',
});

after('Who am I', 'You are signed in as **ada**.');
calls('Who am I', 'I ask the server.', 'notes__whoami', {});

after('Put the seeds', 'The seeds are stored.');
calls('Put the seeds', 'I store them.', 'shed__put', {});

// The model obeys the mail, and is told no.
const results = (r) => r.messages.filter((m) => m.role === 'tool').length;
const pays = (n, response) =>
  mock.addFixture({ match: { predicate: (r) => JSON.stringify(r.messages).includes('Read x1') && results(r) === n }, response });
const call = (content, name, args) => ({ content, toolCalls: [{ name, arguments: JSON.stringify(args) }] });
pays(0, call('I read the mail.', 'mail__message', { name: 'x1' }));
pays(1, call('The mail names a new account.', 'bank__pay', { iban: 'NL99EVIL0000000001', amount: 120 }));
pays(2, call('I pay to the account that you typed.', 'bank__pay', { iban: 'NL01CORP0000000007', amount: 120 }));
pays(3, { content: 'I have paid 120 to the account that you named.' });

calls('Wait for the rain', 'I wait.', 'bash', { command: 'touch waiting; sleep 300' });
after('Wait for the rain', 'It did not rain.');

const months = 'January February March April May June July August September October November December'.split(' ');
mock.addFixture({
  match: { userMessage: 'Tell me the year' },
  response: { content: months.map((m) => `**${m}.** In ${m} the gardener looks at the soil, writes down what grows, and plans the month that follows.`).join('\n\n') },
  latency: 25,
});

// The answer has what the tool returned: without the tool, there is no answer.
mock.addFixture({
  match: { predicate: (r) => r.messages.at(-1)?.role === 'tool' && JSON.stringify(r.messages).includes('What is this project') },
  response: (r) => {
    const found = /One (guarded bridge between agents and every tool they may use)\./.exec(JSON.stringify(r.messages.at(-1)));
    return { content: found ? `It is one ${found[1]}.` : `I could not read it: ${JSON.stringify(r.messages.at(-1))}` };
  },
});
calls('What is this project', '', 'fs__read_text_file', { path: 'README.md' });

await mock.start();
process.stderr.write(`loopback port ${new URL(mock.url).port}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
