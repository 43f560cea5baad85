// The TypeScript SDK's second version, which finds out what the server speaks.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

// peer gives what the stories need of a client, as its namesake for the first version does.
export function peer(url) {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'typescript-v2', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } });
  const listen = async (filter) => {
    const stream = await client.listen(filter);
    return () => stream.close();
  };
  return {
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
  };
}
