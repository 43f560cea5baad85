package cards

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/jsonschema-go/jsonschema"
)

// A Description describes a card whose arguments have the type In.
type Description[In any] struct {
	// Name is the name under which the card is listed and called. Title is the name for people.
	Name, Title string
	// Text is the description for models. Its first line is the summary.
	Text string
	// Examples are example arguments, listed in the input schema; they are optional.
	Examples []In
	// Annotations are hints for clients; nil means a card that only reads.
	Annotations *Annotations
	// Scopes are the scopes that a caller must have.
	Scopes []drawbridge.Scope
	// NotForScripts prevents scripts that run in Drawbridge's sandbox from calling the card.
	NotForScripts bool
	// MayBeTask reports that a call may be answered with a task, if the client knows tasks.
	MayBeTask bool
	// Crossing is set for a card that writes to the workspace. Clients see it in the "_meta" of the tool.
	Crossing *drawbridge.Crossing
	// TextForScripts is set if the structured content of the card's results does not have all of their text. Scripts get
	// the structured content only, so for them it has the text in the member "text".
	TextForScripts bool
	// AcceptsText accepts two more forms of arguments, which some models send: a string that contains a JSON object,
	// and null for no arguments.
	AcceptsText bool
}

// Annotations are the hints of an MCP tool object about the card's effects.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// An Answer is the result of a card: a text for people and a value for programs.
type Answer[Out any] struct {
	Text  string
	Value Out
	// Plain is Text without line numbers, headings and notes, for scripts; nil means Text. See TextForScripts.
	Plain *string
	// Blocks are optional content blocks after the text, such as images.
	Blocks []json.RawMessage
	// IsError marks the result of a call that failed. Unlike a ToolError, such a result also has a Value.
	IsError bool
	// Foreign has the texts marked as foreign, see [drawbridge.Result].
	Foreign bool
	// Raw, if set, is the whole result object and replaces Text and Value. It is for results that are not a text and a
	// value, such as an input_required result.
	Raw json.RawMessage
}

// A Handler carries out a call of a card. Its arguments are already decoded and checked. A ToolError is shown to the
// model.
type Handler[In, Out any] func(ctx context.Context, call drawbridge.Call, in In) (Answer[Out], error)

// A ToolError is a text for the model about a failed call. It becomes a result with "isError" set.
type ToolError string

// Error returns the text.
func (e ToolError) Error() string { return string(e) }

// New returns the card that d describes. Its input and output schemas are generated from the structs In and Out: names
// from json tags, descriptions from jsonschema tags. Members with omitempty or omitzero are optional. Arguments that do
// not match the input schema result in a tool error. New panics if a type has no schema.
func New[In, Out any](d Description[In], handle Handler[In, Out]) drawbridge.Card {
	return newCard(d, newDefinition[In, Out](d), handle)
}

// definitions contains the tool definitions of the shipped cards, in the form in which New generates them. A test
// checks that they are up to date.
//
//go:embed definitions/*.json
var definitions embed.FS

// newShipped is New for a card of this package. It reads the definition from an embedded file, because generating all
// schemas would take milliseconds at each start of the program.
func newShipped[In, Out any](d Description[In], handle Handler[In, Out]) drawbridge.Card {
	var definition bytes.Buffer
	text, err := definitions.ReadFile("definitions/" + d.Name + ".json")
	if err == nil {
		err = json.Compact(&definition, text)
	}
	if err != nil {
		return New(d, handle) // the file does not exist yet; a test writes it
	}
	return newCard(d, definition.Bytes(), handle)
}

// newDefinition returns the tool object of a card.
func newDefinition[In, Out any](d Description[In]) json.RawMessage {
	annotations := json.RawMessage(`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
	if d.Annotations != nil {
		annotations = mustMarshal(d.Annotations)
	}
	var more []rawjson.Edit
	if d.MayBeTask {
		more = append(more, rawjson.Put(rawjson.Quote("optional"), "execution", "taskSupport"))
	}
	if c := d.Crossing; c != nil {
		more = append(more, rawjson.Put(mustMarshal(registration{c.Content, c.Sources, c.ReadTrail, c.Write, d.Scopes, !d.NotForScripts}),
			"_meta", registrationKey))
	}
	return rawjson.Apply(nil, append([]rawjson.Edit{
		rawjson.Put(rawjson.Quote(d.Name), "name"),
		rawjson.Put(rawjson.Quote(d.Title), "title"),
		rawjson.Put(rawjson.Quote(strings.TrimSpace(d.Text)), "description"),
		rawjson.Put(mustMarshal(inputSchema(d)), "inputSchema"),
		rawjson.Put(mustMarshal(outputSchema[In, Out](d)), "outputSchema"),
		rawjson.Put(annotations, "annotations"),
	}, more...)...)
}

// outputSchema returns the schema of a card's structured content.
func outputSchema[In, Out any](d Description[In]) *jsonschema.Schema {
	output := schemaOf[Out]()
	if d.TextForScripts {
		output.Properties[scriptText] = &jsonschema.Schema{Type: "string", Description: "The text, for scripts only."}
	}
	return output
}

// scriptText is the member of the structured content that has the text, see Description.TextForScripts.
const scriptText = "text"

// inputSchema returns the schema of a card's arguments, with the examples.
func inputSchema[In any](d Description[In]) *jsonschema.Schema {
	input := schemaOf[In]()
	for _, example := range d.Examples {
		input.Examples = append(input.Examples, example)
	}
	return input
}

func newCard[In, Out any](d Description[In], definition json.RawMessage, handle Handler[In, Out]) drawbridge.Card {
	decode := newDecoder(d)
	summary, _, _ := strings.Cut(strings.TrimSpace(d.Text), "\n")
	run := func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		in, err := decode(call)
		var answer Answer[Out]
		if err == nil {
			answer, err = handle(ctx, call, in)
		}
		if text, ok := errors.AsType[ToolError](err); ok {
			return newToolError(string(text)), nil
		}
		if err != nil {
			return drawbridge.Result{}, err
		}
		result, err := newResult(answer)
		if err == nil && d.TextForScripts && isScriptCall(call) {
			text := *cmp.Or(answer.Plain, &answer.Text)
			result.Raw = rawjson.Apply(result.Raw, rawjson.Put(rawjson.Quote(text), "structuredContent", scriptText))
		}
		return result, err
	}
	spec := drawbridge.Spec{
		Name: drawbridge.CardName(d.Name), Tool: d.Name, Definition: definition,
		Title: d.Title, Summary: summary, Scopes: d.Scopes, Crossing: d.Crossing, Sandbox: !d.NotForScripts,
	}
	return shippedCard{spec, run, func() json.RawMessage { return newDefinition[In, Out](d) }}
}

// newDecoder returns a function that reads and checks the arguments of a call. Its error is a ToolError for arguments
// that do not match the schema.
func newDecoder[In any](d Description[In]) func(drawbridge.Call) (In, error) {
	// The schema is resolved at the first call, because many processes never call the card.
	resolve := sync.OnceValues(func() (*jsonschema.Resolved, error) { return inputSchema(d).Resolve(nil) })
	return func(call drawbridge.Call) (in In, err error) {
		resolved, err := resolve()
		if err != nil {
			return in, fmt.Errorf("resolve the input schema of %s: %w", d.Name, err)
		}
		arguments := rawjson.Get(call.Params, "arguments")
		if d.AcceptsText {
			arguments = deck.ArgumentsInText(arguments)
		}
		if err := decodeArguments(arguments, resolved, &in); err != nil {
			return in, ToolError(err.Error())
		}
		return in, nil
	}
}

// shippedCard is a card made by New.
type shippedCard struct {
	spec drawbridge.Spec
	run  func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// generate returns the definition that New generates from the description and the structs.
	generate func() json.RawMessage
}

var _ drawbridge.Card = shippedCard{}

func (c shippedCard) Spec() drawbridge.Spec { return c.spec }

func (c shippedCard) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return c.run(ctx, call)
}

// schemaOf returns the schema of a struct type.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // any value; not a list of bytes
	}})
	if err != nil {
		panic(fmt.Sprintf("schema of %v: %v", reflect.TypeFor[T](), err))
	}
	if s.Type != "object" {
		panic(fmt.Sprintf("schema of %v: it must be a struct", reflect.TypeFor[T]()))
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	removeNull(s)
	return s
}

// removeNull removes the type "null" from the schemas of arrays and of optional members: cards omit a member instead of
// sending null. A member that is a required pointer may still be null.
func removeNull(s *jsonschema.Schema) {
	for name, property := range s.Properties {
		optional := !slices.Contains(s.Required, name)
		if optional || slices.Contains(property.Types, "array") {
			property.Types = slices.DeleteFunc(property.Types, func(t string) bool { return t == "null" })
			if len(property.Types) == 1 {
				property.Type, property.Types = property.Types[0], nil
			}
		}
		removeNull(property)
	}
	if s.Items != nil {
		removeNull(s.Items)
	}
}

// decodeArguments decodes arguments into target and checks them against a schema. Absent arguments count as an empty
// object. The error is a sentence for the model.
func decodeArguments(arguments json.RawMessage, resolved *jsonschema.Resolved, target any) error {
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	var instance map[string]any
	if err := json.Unmarshal(arguments, &instance); err != nil || instance == nil {
		return errors.New("arguments must be a JSON object")
	}
	schema := resolved.Schema()
	for m := range rawjson.Members(arguments) {
		name, _ := rawjson.DecodeString(m.Name)
		property, ok := schema.Properties[name]
		if !ok {
			return fmt.Errorf("unknown argument %q; %s", name, allowedArguments(schema))
		}
		if string(m.Value) == "null" && property.Type != "" && property.Type != "null" {
			return fmt.Errorf("argument %q must be %s", name, describeType(property.Type))
		}
	}
	for _, name := range schema.Required {
		if _, ok := instance[name]; !ok {
			return fmt.Errorf("argument %q is missing; it must be %s", name,
				describeType(schema.Properties[name].Type))
		}
	}
	if err := json.Unmarshal(arguments, target); err != nil {
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok {
			return fmt.Errorf("decode arguments: %w", err)
		}
		return fmt.Errorf("argument %q must be %s", wrong.Field, describeGoType(wrong.Type))
	}
	if err := resolved.Validate(instance); err != nil {
		return fmt.Errorf("arguments do not match the input schema: %w", err)
	}
	return nil
}

// allowedArguments returns a text for the model with the arguments of a schema.
func allowedArguments(schema *jsonschema.Schema) string {
	if len(schema.Properties) == 0 {
		return "this tool has no arguments"
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, fmt.Sprintf("%q", name))
	}
	slices.Sort(names)
	return "the arguments are " + strings.Join(names, ", ")
}

// describeType returns the name of a JSON type with its article.
func describeType(jsonType string) string {
	switch jsonType {
	case "":
		return "a JSON value"
	case "array", "integer", "object":
		return "an " + jsonType
	}
	return "a " + jsonType
}

// describeGoType returns the name of the JSON type that decodes into t, with its article.
func describeGoType(t reflect.Type) string {
	if s, err := jsonschema.ForType(t, &jsonschema.ForOptions{IgnoreInvalidTypes: true}); err == nil && s != nil {
		removeNull(&jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"": s}})
		return describeType(s.Type)
	}
	return "another JSON type"
}

// newResult returns the result object of an answer.
func newResult[Out any](a Answer[Out]) (drawbridge.Result, error) {
	if a.Raw != nil {
		return drawbridge.Result{Raw: a.Raw, Foreign: a.Foreign}, nil
	}
	structured, err := json.Marshal(a.Value)
	if err != nil {
		return drawbridge.Result{}, fmt.Errorf("encode result: %w", err)
	}
	edits := []rawjson.Edit{rawjson.Put(structured, "structuredContent")}
	if a.IsError {
		edits = append(edits, rawjson.Put(json.RawMessage("true"), "isError"))
	}
	return drawbridge.Result{Raw: rawjson.Apply(textContent(a.Text, a.Blocks...), edits...), Foreign: a.Foreign}, nil
}

// newToolError returns the result of a failed call: an error that the model can read.
func newToolError(text string) drawbridge.Result {
	return drawbridge.Result{Raw: rawjson.Apply(textContent(text), rawjson.Put(json.RawMessage("true"), "isError"))}
}

// textContent returns a result object whose content is a text block, followed by more blocks.
func textContent(text string, more ...json.RawMessage) json.RawMessage {
	content := []byte{'['}
	content = append(content,
		rawjson.Apply(nil, rawjson.Put(rawjson.Quote("text"), "type"), rawjson.Put(rawjson.Quote(text), "text"))...)
	for _, block := range more {
		content = append(append(content, ','), block...)
	}
	return rawjson.Apply(nil, rawjson.Put(append(content, ']'), "content"))
}

// mustMarshal returns v as JSON. It panics if v cannot be encoded.
func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
