package finder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An Opened call is what one of call_tool is about.
type Opened struct {
	// Params are those of a call of the card itself: its name and arguments, and all else that the caller sent.
	Params json.RawMessage
	Name   string
	// Arguments are nil where there are none.
	Arguments json.RawMessage
}

// Open gives the call that a call of call_tool is about. The error says what is wrong with its arguments.
func Open(params, arguments json.RawMessage) (Opened, error) {
	name, inner, err := read(arguments)
	if err != nil {
		return Opened{}, err
	}
	edit := wire.Drop("arguments")
	if inner != nil {
		edit = wire.Put(inner, "arguments")
	}
	o := Opened{Params: wire.Apply(params, wire.Put(name, "name"), edit), Arguments: inner}
	o.Name, _ = wire.Text(name)
	return o, nil
}

// read gives the name of a card and its arguments, nil where there are none. Arguments that stand in a text, as models write
// them, are taken out of it.
func read(arguments json.RawMessage) (name, inner json.RawMessage, err error) {
	for m := range wire.Members(arguments) {
		var to *json.RawMessage
		switch {
		case m.Is("name"):
			to = &name
		case m.Is("arguments"):
			to = &inner
		case m.Resembles("name") || m.Resembles("arguments"):
			return nil, nil, errors.New("there is a name that some readers take for another")
		default:
			continue
		}
		if *to != nil {
			return nil, nil, fmt.Errorf("there are two %s", m.Name)
		}
		*to = m.Value
	}
	text, ok := wire.Text(name)
	switch {
	case !ok || text == "":
		return nil, nil, errors.New(`it takes the name of a tool, and its arguments: {"name": "…", "arguments": {…}}`)
	case text == CallName:
		return nil, nil, errors.New("it does not call itself")
	case inner == nil || string(inner) == "null":
		return name, nil, nil
	}
	if written, ok := wire.Text(inner); ok {
		var b bytes.Buffer // a server that reads lines is not to find two
		if wire.Valid([]byte(written)) != nil || json.Compact(&b, []byte(written)) != nil {
			return nil, nil, errors.New("the arguments are a text that is no JSON object")
		}
		inner = b.Bytes()
	}
	if len(inner) == 0 || inner[0] != '{' {
		return nil, nil, errors.New("the arguments are no JSON object")
	}
	return name, inner, nil
}
