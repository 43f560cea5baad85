package toolsearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An InnerCall is the tool call in the arguments of call_tool.
type InnerCall struct {
	// Params are the params of an equivalent direct call of the tool. They contain its name, its arguments, and all
	// other members in the params of call_tool.
	Params json.RawMessage
	Name   string
	// Arguments are the tool's arguments, or nil if they are absent.
	Arguments json.RawMessage
}

// ParseCallTool returns the tool call in the arguments of call_tool. params are the params of the call of call_tool.
// The error describes what is invalid in the arguments.
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

// parseCallArguments returns the name and the arguments of the tool; inner is nil if the arguments are absent. Some
// models write the arguments as a JSON string, which parseCallArguments decodes.
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
		var b bytes.Buffer // remove line ends, because some servers expect each message on one line
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
