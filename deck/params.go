package deck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ArgumentsInText returns the arguments of a call. If arguments is a JSON string whose text is a JSON object, it
// returns this object, because some models encode arguments twice. It returns nil for null, and any other value
// unchanged.
func ArgumentsInText(arguments json.RawMessage) json.RawMessage {
	if string(arguments) == "null" {
		return nil
	}
	text, ok := rawjson.DecodeString(arguments)
	if text = strings.TrimSpace(text); ok && strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return arguments
}

// callParams contains the members of a call's params that the deck reads.
type callParams struct {
	// Name is the name or URI of the tool, prompt or resource.
	Name string
	// RefType is the type of the reference in a completion, such as "ref/prompt"; empty for other methods.
	RefType string
	// Arguments is the member "arguments" and State is the member "requestState"; nil if absent.
	Arguments, State json.RawMessage
}

// ReadParams returns the members of the params that the deck reads. It returns an InvalidInput fault if the params have
// no name or URI, or if they have members that parsers may read differently; see pickMembers.
func ReadParams(method string, raw json.RawMessage) (callParams, error) {
	subject := "name"
	switch method {
	case mcp.MethodResourcesRead, mcp.MethodSkillsGet, mcp.MethodDirectoryRead:
		subject = "uri"
	case mcp.MethodComplete:
		subject = "ref"
	}
	parts, err := pickMembers(method, raw, subject, "arguments", "requestState")
	if err != nil {
		return callParams{}, err
	}
	p := callParams{Arguments: parts[1], State: parts[2]}
	about := parts[0]
	if string(p.State) == "null" {
		p.State = nil
	}
	if method == mcp.MethodComplete {
		ref, err := pickMembers(method, about, "type", "name", "uri")
		if err != nil {
			return callParams{}, err
		}
		p.RefType, _ = rawjson.DecodeString(ref[0])
		if subject, about = "ref.name", ref[1]; p.RefType == resourceRefType {
			subject, about = "ref.uri", ref[2]
		}
	}
	var ok bool
	if p.Name, ok = rawjson.DecodeString(about); !ok {
		return callParams{}, invalidParamsFault(method, fmt.Errorf("params have no %s", subject))
	}
	return p, nil
}

// pickMembers returns the values of the members of object with these names; nil for a missing member. It returns an
// error if one of these members occurs twice, because parsers disagree about which value to use. It also returns an
// error for a member whose name some parsers treat as one of names, such as "Name". Otherwise a server could use a
// value that no guard has checked.
func pickMembers(method string, object json.RawMessage, names ...string) ([]json.RawMessage, error) {
	parts := make([]json.RawMessage, len(names))
	known := append(names[:len(names):len(names)], "_meta", "inputResponses")
	for m := range rawjson.Members(object) {
		i := slices.IndexFunc(names, m.HasName)
		switch {
		case i < 0:
			if j := slices.IndexFunc(known, m.ResemblesName); j >= 0 {
				return nil, invalidParamsFault(method, fmt.Errorf("params have a name that some readers take for %q",
					known[j]))
			}
		case parts[i] != nil:
			return nil, invalidParamsFault(method, fmt.Errorf("params have two %s", names[i]))
		default:
			parts[i] = m.Value
		}
	}
	return parts, nil
}

// The types of references in a completion.
const (
	promptRefType   = "ref/prompt"
	resourceRefType = "ref/resource"
)

// invalidParamsFault returns an InvalidInput fault for a call of a method.
func invalidParamsFault(method string, cause error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: method, Err: cause}
}
