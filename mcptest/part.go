package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ServerPart is what a server is made of: a Tool, a Prompt, a Resource, Instructions or Only.
type ServerPart interface{ addTo(*serverFeatures) }

// An AnswerFunc makes the result of one call. The result is sent byte for byte; ServerCall.Text makes one of the form
// that the call needs. An error of Refuse is sent as the error it says; one of ServerCall.AskClient must be returned,
// wrapped or not; any other becomes the text of a tool's result that is marked as an error, or an internal error where
// a prompt or a resource was asked for.
type AnswerFunc func(ctx context.Context, c *ServerCall) (result json.RawMessage, err error)

// Text always answers with a text: a block of content, a message of a prompt, the contents of a resource.
func Text(text string) AnswerFunc {
	return func(_ context.Context, c *ServerCall) (json.RawMessage, error) { return c.Text(text), nil }
}

// Result always answers with the same result, byte for byte.
func Result(result string) AnswerFunc {
	return func(context.Context, *ServerCall) (json.RawMessage, error) { return json.RawMessage(result), nil }
}

// Refuse is the error of an Answer that is sent as a JSON-RPC error.
func Refuse(code int, message string) error { return refusalError{code, message} }

type refusalError struct {
	code    int
	message string
}

func (r refusalError) Error() string { return fmt.Sprintf("%d: %s", r.code, r.message) }

// A Tool is a tool of a server's.
type Tool struct {
	Name, Description string
	// Schema is the inputSchema; nil is an object of anything.
	Schema json.RawMessage
	// Definition is the whole definition, sent as it stands; where it is set, Description and Schema are not looked
	// at, and an empty Name is the one it has.
	Definition json.RawMessage
	// Answer is called for each call; nil answers with the arguments, as a text.
	Answer AnswerFunc
}

// A Prompt is a prompt of a server. Arguments are the names of its arguments. With a nil Answer it answers with the
// arguments that it received.
type Prompt struct {
	Name, Description string
	Arguments         []string
	Answer            AnswerFunc
}

// A Resource is a resource of a server's. An empty Name is the URI; nil Answer answers with an empty text.
type Resource struct {
	URI, Name, MimeType string
	Answer              AnswerFunc
}

// Instructions are what the server says about itself.
type Instructions string

// OnlyEra has the server speak one generation: drawbridge.Legacy or drawbridge.Modern. The other is refused as a server
// would that never heard of it.
type OnlyEra drawbridge.ProtocolEra

// serverFeatures are what a server has at the moment, in order.
type serverFeatures struct {
	tools, prompts, resources []listedFeature
	instructions              string
	eras                      drawbridge.ProtocolEra
}

// A listedFeature is one entry of a list: the name it is called by, how it is listed, and what answers it.
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

// putFeature adds a feature, in the place of one of the same name.
func putFeature(list *[]listedFeature, one listedFeature) {
	for i := range *list {
		if (*list)[i].name == one.name {
			(*list)[i] = one
			return
		}
	}
	*list = append(*list, one)
}

// jsonObject writes members, name and value in turn, in their order; an empty text is left out unless it is a name.
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
