package fakemcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Part is what a server is made of: a Tool, a Prompt, a Resource, Instructions or Only.
type Part interface{ join(*features) }

// An Answer makes the result of one call. The result is sent byte for byte; Call.Text makes one of the form that the call needs. An
// error of Refuse is sent as the error it says; one of Call.Ask must be returned, wrapped or not; any other becomes the text
// of a tool's result that is marked as an error, or an internal error where a prompt or a resource was asked for.
type Answer func(ctx context.Context, c *Call) (result json.RawMessage, err error)

// Text always answers with a text: a block of content, a message of a prompt, the contents of a resource.
func Text(text string) Answer {
	return func(_ context.Context, c *Call) (json.RawMessage, error) { return c.Text(text), nil }
}

// Result always answers with the same result, byte for byte.
func Result(result string) Answer {
	return func(context.Context, *Call) (json.RawMessage, error) { return json.RawMessage(result), nil }
}

// Refuse is the error of an Answer that is sent as a JSON-RPC error.
func Refuse(code int, message string) error { return refusal{code, message} }

type refusal struct {
	code    int
	message string
}

func (r refusal) Error() string { return fmt.Sprintf("%d: %s", r.code, r.message) }

// A Tool is a tool of a server's.
type Tool struct {
	Name, Description string
	// Schema is the inputSchema; nil is an object of anything.
	Schema json.RawMessage
	// Definition is the whole definition, sent as it stands; where it is set, Description and Schema are not looked at, and an
	// empty Name is the one it has.
	Definition json.RawMessage
	// Answer is called for each call; nil answers with the arguments, as a text.
	Answer Answer
}

// A Prompt is a prompt of a server's. Arguments are the names of what it can be given; nil Answer answers with the arguments.
type Prompt struct {
	Name, Description string
	Arguments         []string
	Answer            Answer
}

// A Resource is a resource of a server's. An empty Name is the URI; nil Answer answers with an empty text.
type Resource struct {
	URI, Name, MimeType string
	Answer              Answer
}

// Instructions are what the server says about itself.
type Instructions string

// Only has the server speak one generation: drawbridge.Legacy or drawbridge.Modern. The other is refused as a server
// would that never heard of it.
type Only drawbridge.Era

// features are what a server has at the moment, in order.
type features struct {
	tools, prompts, resources []feature
	instructions              string
	eras                      drawbridge.Era
}

// A feature is one entry of a list: the name it is called by, how it is listed, and what answers it.
type feature struct {
	name       string
	definition json.RawMessage
	answer     Answer
}

func (t Tool) join(f *features) {
	name, definition := t.Name, t.Definition
	if definition == nil {
		schema := t.Schema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		definition = object("name", t.Name, "description", t.Description, "inputSchema", schema)
	}
	if name == "" {
		name = wire.GetText(definition, "name")
	}
	put(&f.tools, feature{name, definition, orArguments(t.Answer)})
}

func (p Prompt) join(f *features) {
	arguments := []map[string]string{}
	for _, name := range p.Arguments {
		arguments = append(arguments, map[string]string{"name": name})
	}
	definition := object("name", p.Name, "description", p.Description, "arguments", arguments)
	put(&f.prompts, feature{p.Name, definition, orArguments(p.Answer)})
}

func (r Resource) join(f *features) {
	answer := r.Answer
	if answer == nil {
		answer = Text("")
	}
	definition := object("uri", r.URI, "name", cmp.Or(r.Name, r.URI))
	if r.MimeType != "" {
		definition = wire.Apply(definition, wire.Put(wire.Quote(r.MimeType), "mimeType"))
	}
	put(&f.resources, feature{r.URI, definition, answer})
}

func (i Instructions) join(f *features) { f.instructions = string(i) }

func (o Only) join(f *features) { f.eras = drawbridge.Era(o) }

func orArguments(a Answer) Answer {
	if a != nil {
		return a
	}
	return func(_ context.Context, c *Call) (json.RawMessage, error) { return c.Text(string(c.Arguments)), nil }
}

// put adds a feature, in the place of one of the same name.
func put(list *[]feature, one feature) {
	for i := range *list {
		if (*list)[i].name == one.name {
			(*list)[i] = one
			return
		}
	}
	*list = append(*list, one)
}

// object writes members, name and value in turn, in their order; an empty text is left out unless it is a name.
func object(members ...any) json.RawMessage {
	obj := json.RawMessage("{}")
	for i := 0; i < len(members); i += 2 {
		name := members[i].(string)
		value, err := json.Marshal(members[i+1])
		if err != nil || string(value) == `""` && name != "name" {
			continue
		}
		obj = wire.Apply(obj, wire.Put(value, name))
	}
	return obj
}
