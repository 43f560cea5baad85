// What the stories have in common: what a client says when it is asked, and how it keeps what it sees.

// said has a member for each step, which is {"error", "code"} where the step went wrong.
export const said = {};

// tell keeps what a step gives.
export async function tell(name, step) {
  try {
    said[name] = (await step()) ?? null;
  } catch (e) {
    said[name] = { error: String(e?.message ?? e), code: e?.code };
  }
}

export const text = (result) => (result.isError ? 'ERROR ' : '') + result.content.map((c) => c.text ?? c.type).join(' ');

// answers are what the client says when it is asked; it notes the questions.
export function answers(questions) {
  return {
    'elicitation/create': ({ params }) => {
      questions.push(`elicitation: ${params.message}`);
      const wanted = Object.entries(params.requestedSchema?.properties ?? {});
      const content = Object.fromEntries(wanted.filter(([, p]) => p.type === 'string' && !p.enum && !p.oneOf && !p.format).map(([k]) => [k, 'Ada']));
      return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content };
    },
    'sampling/createMessage': ({ params }) => {
      questions.push(`sampling: ${[params.messages.at(-1).content].flat()[0].text}`);
      return { role: 'assistant', model: 'a-model', content: { type: 'text', text: 'words of a model' } };
    },
    'roots/list': () => {
      questions.push('roots');
      return { roots: [{ uri: 'file:///peers', name: 'peers' }] };
    },
  };
}
