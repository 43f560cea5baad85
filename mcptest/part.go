package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ServerPart is a part of a server: a Tool, a Prompt, a Resource, Instructions or OnlyEra.
type ServerPart interface{ addTo(*serverFeatures) }

// An AnswerFunc returns the result of one call. The result is sent byte for byte; ServerCall.Text returns a result in
// the form that the call requires. An error that Refuse has created is sent as a JSON-RPC error. If
// ServerCall.AskClient returns an error, the AnswerFunc must return that error, wrapped or not. Any other error becomes
// the text of a tool result that is marked as an error. For a prompt or a resource, it becomes an internal error.
type AnswerFunc func(ctx context.Context, c *ServerCall) (result json.RawMessage, err error)

// Text returns an AnswerFunc that always answers with a text: a content block, a message of a prompt, or the contents
// of a resource.
func Text(text string) AnswerFunc {
	return func(_ context.Context, c *ServerCall) (json.RawMessage, error) { return c.Text(text), nil }
}

// Result returns an AnswerFunc that always answers with the same result, byte for byte.
func Result(result string) AnswerFunc {
	return func(context.Context, *ServerCall) (json.RawMessage, error) { return json.RawMessage(result), nil }
}

// Refuse returns an error with a JSON-RPC code and message. If an AnswerFunc returns it, the client receives it as a
// JSON-RPC error.
func Refuse(code int, message string) error { return refusalError{code, message} }

type refusalError struct {
	code    int
	message string
}

func (r refusalError) Error() string { return fmt.Sprintf("%d: %s", r.code, r.message) }

// A Tool is a tool of a server.
type Tool struct {
	Name, Description string
	// Schema is the inputSchema; nil means an object with any members.
	Schema json.RawMessage
	// Definition is the whole definition, sent unchanged. If it is set, Description and Schema are ignored, and an
	// empty Name means the name in Definition.
	Definition json.RawMessage
	// Answer is called for each call. A nil Answer returns the arguments as a text.
	Answer AnswerFunc
}

// A Prompt is a prompt of a server. Arguments are the names of its arguments. A nil Answer returns the received
// arguments as a text.
type Prompt struct {
	Name, Description string
	Arguments         []string
	Answer            AnswerFunc
}

// A Resource is a resource of a server. An empty Name means the URI. A nil Answer returns an empty text.
type Resource struct {
	URI, Name, MimeType string
	Answer              AnswerFunc
}

// Instructions are the instructions in the server's response to initialize and server/discover.
type Instructions string

// OnlyEra restricts the server to one generation of the protocol: drawbridge.Legacy (stateful) or drawbridge.Modern
// (stateless). To requests of the other generation, the server responds with an error, as if it did not know that
// generation.
type OnlyEra drawbridge.ProtocolEra

// serverFeatures are the current features of a server, in listed order.
type serverFeatures struct {
	tools, prompts, resources []listedFeature
	instructions              string
	eras                      drawbridge.ProtocolEra
}

// A listedFeature is one entry of a list: its name, its definition in the list, and the function that answers calls.
type listedFeature struct {
	name       string
	definition json.RawMessage
	answer     AnswerFunc
}

func (t Tool) addTo(f *serverFeatures) {
	name, definition := t.Name, t.Definition
	if definition == nil {
		schema := t.Schema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		definition = jsonObject("name", t.Name, "description", t.Description, "inputSchema", schema)
	}
	if name == "" {
		name = rawjson.GetString(definition, "name")
	}
	putFeature(&f.tools, listedFeature{name, definition, orEchoArguments(t.Answer)})
}

func (p Prompt) addTo(f *serverFeatures) {
	arguments := []map[string]string{}
	for _, name := range p.Arguments {
		arguments = append(arguments, map[string]string{"name": name})
	}
	definition := jsonObject("name", p.Name, "description", p.Description, "arguments", arguments)
	putFeature(&f.prompts, listedFeature{p.Name, definition, orEchoArguments(p.Answer)})
}

func (r Resource) addTo(f *serverFeatures) {
	answer := r.Answer
	if answer == nil {
		answer = Text("")
	}
	definition := jsonObject("uri", r.URI, "name", cmp.Or(r.Name, r.URI))
	if r.MimeType != "" {
		definition = rawjson.Apply(definition, rawjson.Put(rawjson.Quote(r.MimeType), "mimeType"))
	}
	putFeature(&f.resources, listedFeature{r.URI, definition, answer})
}

func (i Instructions) addTo(f *serverFeatures) { f.instructions = string(i) }

func (o OnlyEra) addTo(f *serverFeatures) { f.eras = drawbridge.ProtocolEra(o) }

func orEchoArguments(a AnswerFunc) AnswerFunc {
	if a != nil {
		return a
	}
	return func(_ context.Context, c *ServerCall) (json.RawMessage, error) {
		return c.Text(string(c.Arguments)), nil
	}
}

// putFeature adds a feature to a list, or replaces the feature of the same name.
func putFeature(list *[]listedFeature, one listedFeature) {
	for i := range *list {
		if (*list)[i].name == one.name {
			(*list)[i] = one
			return
		}
	}
	*list = append(*list, one)
}

// jsonObject returns an object with the given members: names and values in turn, in this order. A value "" is omitted
// unless its member is "name".
func jsonObject(members ...any) json.RawMessage {
	obj := json.RawMessage("{}")
	for i := 0; i < len(members); i += 2 {
		name := members[i].(string)
		value, err := json.Marshal(members[i+1])
		if err != nil || string(value) == `""` && name != "name" {
			continue
		}
		obj = rawjson.Apply(obj, rawjson.Put(value, name))
	}
	return obj
}
