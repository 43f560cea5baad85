package interop

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// resultLists maps a method to the name of the list of objects in its result. The list may be missing: in results of
// the types task and input_required, and in results with only structured content.
var resultLists = map[string]string{
	mcp.MethodToolsCall: "content", mcp.MethodTasksResult: "content",
	mcp.MethodResourcesRead: "contents",
	mcp.MethodPromptsGet:    "messages",
}

// CheckResultShape returns a *transport.MalformedResponseError if the list that resultLists names for the method is not
// a list of objects. A client would fail on such a result, and the guards would not see the text in it.
func CheckResultShape(method string, result json.RawMessage) error {
	name, ok := resultLists[method]
	if !ok || MayNeedInput(result) { // the rest of a result that asks for input is not read
		return nil
	}
	list := rawjson.Get(result, name)
	switch {
	case list == nil:
		return nil
	case list[0] != '[':
		return &transport.MalformedResponseError{Reason: fmt.Sprintf("%q is not a list", name)}
	}
	for element := range rawjson.Elements(list) {
		if element[0] != '{' {
			return &transport.MalformedResponseError{Reason: fmt.Sprintf("an element of %q is not an object", name)}
		}
	}
	return nil
}
