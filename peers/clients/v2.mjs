// The TypeScript SDK's second version, which finds out what the server speaks: node v2.mjs URL KEY
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { play } from './story.mjs';

const [url, key] = process.argv.slice(2);
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const client = new Client({ name: 'typescript-v2', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } });
const listen = async (filter) => {
  const stream = await client.listen(filter);
  return () => stream.close();
};

await play(
  {
    client,
    transport: new StreamableHTTPClientTransport(new URL(url)),
    modern: () => client.getProtocolEra() === 'modern',
    protocol: () => client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
    ask: (method, answer) => client.setRequestHandler(method, answer),
    hear: (method, listener) => client.setNotificationHandler(method, listener),
    level: async (level) => ({ _meta: { 'io.modelcontextprotocol/logLevel': level } }),
    subscribe: (uri) => listen({ resourceSubscriptions: [uri] }),
    listChanged: () => listen({ toolsListChanged: true }),
  },
  key,
);
