// Package params reads what the params of a call say, as far as a deck decides on it.
//
// It promises that nobody who reads the params after it finds something else there: a member that is there twice, or by a
// name that some readers take for another, is refused.
package params

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Params are the parts of a call's params that the deck reads.
type Params struct {
	// Name is the name or URI that the call is about.
	Name string
	// Kind is the type of a completion's reference, Prompt or Resource.
	Kind string
	// Arguments and State are nil where they are absent.
	Arguments, State json.RawMessage
}

// Read reads params in one pass. The error is that of Invalid, for params that do not say what the call is about.
func Read(method string, raw json.RawMessage) (Params, error) {
	subject := "name"
	switch method {
	case wire.MethodResourcesRead, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		subject = "uri"
	case wire.MethodComplete:
		subject = "ref"
	}
	parts, err := Pick(method, raw, subject, "arguments", "requestState")
	if err != nil {
		return Params{}, err
	}
	p := Params{Arguments: parts[1], State: parts[2]}
	about := parts[0]
	if string(p.State) == "null" {
		p.State = nil
	}
	if method == wire.MethodComplete {
		ref, err := Pick(method, about, "type", "name", "uri")
		if err != nil {
			return Params{}, err
		}
		p.Kind, _ = wire.Text(ref[0])
		if subject, about = "ref.name", ref[1]; p.Kind == Resource {
			subject, about = "ref.uri", ref[2]
		}
	}
	var ok bool
	if p.Name, ok = wire.Text(about); !ok {
		return Params{}, Invalid(method, fmt.Errorf("params have no %s", subject))
	}
	return p, nil
}

// Pick gives the members of an object by their names. One that is there twice is refused: whoever reads the object next
// might take the other. So is a name that some readers take for one of these: a server that does would do what was not decided on.
func Pick(method string, object json.RawMessage, names ...string) ([]json.RawMessage, error) {
	parts := make([]json.RawMessage, len(names))
	known := append(names[:len(names):len(names)], "_meta", "inputResponses")
	for m := range wire.Members(object) {
		i := slices.IndexFunc(names, m.Is)
		switch {
		case i < 0:
			if j := slices.IndexFunc(known, m.Resembles); j >= 0 {
				return nil, Invalid(method, fmt.Errorf("params have a name that some readers take for %q", known[j]))
			}
		case parts[i] != nil:
			return nil, Invalid(method, fmt.Errorf("params have two %s", names[i]))
		default:
			parts[i] = m.Value
		}
	}
	return parts, nil
}

// The references of a completion.
const (
	Prompt   = "ref/prompt"
	Resource = "ref/resource"
)

// Invalid is the fault InvalidInput of a call by a method, and why.
func Invalid(method string, cause error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: method, Err: cause}
}
