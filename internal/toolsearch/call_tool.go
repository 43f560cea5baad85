package toolsearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An InnerCall is the call that a call of call_tool contains.
type InnerCall struct {
	// Params are the params of a direct call of the tool: its name and arguments, and every other member that the
	// caller sent.
	Params json.RawMessage
	Name   string
	// Arguments are nil if absent.
	Arguments json.RawMessage
}

// ParseCallTool returns the call in a call of call_tool. The error describes invalid arguments.
func ParseCallTool(params, arguments json.RawMessage) (InnerCall, error) {
	name, inner, err := parseCallArguments(arguments)
	if err != nil {
		return InnerCall{}, err
	}
	edit := rawjson.Drop("arguments")
	if inner != nil {
		edit = rawjson.Put(inner, "arguments")
	}
	o := InnerCall{Params: rawjson.Apply(params, rawjson.Put(name, "name"), edit), Arguments: inner}
	o.Name, _ = rawjson.DecodeString(name)
	return o, nil
}

// parseCallArguments returns the name of a tool and its arguments, nil if absent. Arguments inside a string, as some
// models write them, are unwrapped.
func parseCallArguments(arguments json.RawMessage) (name, inner json.RawMessage, err error) {
	for m := range rawjson.Members(arguments) {
		var to *json.RawMessage
		switch {
		case m.HasName("name"):
			to = &name
		case m.HasName("arguments"):
			to = &inner
		case m.ResemblesName("name") || m.ResemblesName("arguments"):
			return nil, nil, errors.New("a member has a name that some parsers take for another")
		default:
			continue
		}
		if *to != nil {
			return nil, nil, fmt.Errorf("there are two %s", m.Name)
		}
		*to = m.Value
	}
	text, ok := rawjson.DecodeString(name)
	switch {
	case !ok || text == "":
		return nil, nil, errors.New(`it takes the name of a tool, and its arguments: {"name": "…", "arguments": {…}}`)
	case text == CallToolName:
		return nil, nil, errors.New("it does not call itself")
	case inner == nil || string(inner) == "null":
		return name, nil, nil
	}
	if written, ok := rawjson.DecodeString(inner); ok {
		var b bytes.Buffer // remove line ends: some servers read one message on each line
		if rawjson.Valid([]byte(written)) != nil || json.Compact(&b, []byte(written)) != nil {
			return nil, nil, errors.New("arguments must be a JSON object")
		}
		inner = b.Bytes()
	}
	if len(inner) == 0 || inner[0] != '{' {
		return nil, nil, errors.New("arguments must be a JSON object")
	}
	return name, inner, nil
}
