package interop

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// resultLists names the list of objects that the result of a method has. A result may lack it: task and input_required
// results do, and so do servers that return structured content alone.
var resultLists = map[string]string{
	mcp.MethodToolsCall: "content", mcp.MethodTasksResult: "content",
	mcp.MethodResourcesRead: "contents",
	mcp.MethodPromptsGet:    "messages",
}

// CheckResultShape returns a *transport.MalformedResponseError for a result whose list has a different shape than the
// method's results have. A client would fail on it, and the guards would not see the text in it.
func CheckResultShape(method string, result json.RawMessage) error {
	name, ok := resultLists[method]
	if !ok || MayNeedInput(result) { // such a result asks for input, and the rest of it is not read
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
