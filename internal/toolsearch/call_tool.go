package toolsearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An InnerCall call is what one of call_tool is about.
type InnerCall struct {
	// Params are those of a call of the card itself: its name and arguments, and all else that the caller sent.
	Params json.RawMessage
	Name   string
	// Arguments are nil where there are none.
	Arguments json.RawMessage
}

// ParseCallTool gives the call that a call of call_tool is about. The error says what is wrong with its arguments.
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

// parseCallArguments gives the name of a card and its arguments, nil where there are none. Arguments that stand in a
// text, as models write them, are taken out of it.
func parseCallArguments(arguments json.RawMessage) (name, inner json.RawMessage, err error) {
	for m := range rawjson.Members(arguments) {
		var to *json.RawMessage
		switch {
		case m.HasName("name"):
			to = &name
		case m.HasName("arguments"):
			to = &inner
		case m.ResemblesName("name") || m.ResemblesName("arguments"):
			return nil, nil, errors.New("there is a name that some readers take for another")
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
		var b bytes.Buffer // a server that reads lines is not to find two
		if rawjson.Valid([]byte(written)) != nil || json.Compact(&b, []byte(written)) != nil {
			return nil, nil, errors.New("the arguments are a text that is no JSON object")
		}
		inner = b.Bytes()
	}
	if len(inner) == 0 || inner[0] != '{' {
		return nil, nil, errors.New("the arguments are no JSON object")
	}
	return name, inner, nil
}
