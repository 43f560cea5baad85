// The TypeScript SDK's first version, which speaks the stateful protocol.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const schemas = {
  'elicitation/create': types.ElicitRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
  'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
};

// peer gives what the stories need of a client, where the versions of the SDK differ. task runs a tool as a task.
export function peer(url) {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'typescript-v1', version: '1' }, { capabilities });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  return {
    client,
    transport,
    modern: () => false,
    protocol: () => transport.protocolVersion,
    call: (params, options) => client.callTool(params, undefined, options),
    ask: (method, answer) => client.setRequestHandler(schemas[method], answer),
    hear: (method, listener) => client.setNotificationHandler(schemas[method], listener),
    level: async (level) => void (await client.setLoggingLevel(level)),
    subscribe: async (uri) => {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    listChanged: async () => async () => {},
    task: async (params) => {
      let result;
      for await (const m of client.experimental.tasks.callToolStream(params, types.CallToolResultSchema, { task: { ttl: 60000 } })) {
        if (m.type === 'error') throw m.error;
        if (m.type === 'result') result = m.result;
      }
      return result;
    },
  };
}
