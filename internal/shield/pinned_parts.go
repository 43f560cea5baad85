package shield

import (
	"encoding/json"
	"strings"
)

// The names of the parts of a listing that are pinned. The name for the part with the tools is "". Resources are not
// pinned, because their lists change with the data of the server.
const (
	PartPrompt       = "prompt"
	PartTemplate     = "template"
	PartInstructions = "instructions"
)

// PinnedParts returns all parts that are pinned, the tools first.
func PinnedParts() []string { return []string{"", PartPrompt, PartTemplate, PartInstructions} }

// PinnedName returns the name under which a definition of a part is pinned. It returns "" for a definition without a
// name, and for an unknown part. Instructions are pinned under the name of their part.
func PinnedName(part string, definition json.RawMessage) string {
	member, ok := map[string]string{"": "name", PartPrompt: "name", PartTemplate: "uriTemplate",
		PartInstructions: "instructions"}[part]
	var all map[string]json.RawMessage
	var text *string
	if !ok || json.Unmarshal(definition, &all) != nil || json.Unmarshal(all[member], &text) != nil || text == nil {
		return ""
	}
	if part == PartInstructions {
		return part
	}
	return *text
}

// InstructionsDefinition returns the definition under which instructions are pinned: a JSON object with the text as its
// only member.
func InstructionsDefinition(text string) json.RawMessage {
	return append(append([]byte(`{"instructions":`), quoteJSON(text)...), '}')
}

// PinLabel returns the label by which people refer to a pinned item in commands. For a tool the label is its name, for
// other parts the part and the name. A tool whose name looks like the label of another part gets the prefix "tool:".
func PinLabel(part, name string) string {
	switch before, _, cut := strings.Cut(name, ":"); {
	case part == PartInstructions:
		return part
	case part != "":
		return part + ":" + name
	case name == PartInstructions, cut && (before == PartPrompt || before == PartTemplate || before == "tool"):
		return "tool:" + name
	}
	return name
}
