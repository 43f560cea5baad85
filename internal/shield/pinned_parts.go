package shield

import (
	"encoding/json"
	"strings"
)

// The parts of what a server says that are pinned beside its tools, whose part is empty. Resources are not among them:
// they are what a server has, and their lists change with it.
const (
	PartPrompt       = "prompt"
	PartTemplate     = "template"
	PartInstructions = "instructions"
)

// PinnedParts are all parts that are pinned, the tools first.
func PinnedParts() []string { return []string{"", PartPrompt, PartTemplate, PartInstructions} }

// PinnedName returns the name under which a definition of a part is pinned; empty for one that has none, and where
// there is no such part. A server has one text of instructions, which go by the name of their part.
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

// InstructionsDefinition is the definition that instructions are pinned as: an object with the text as its one member.
func InstructionsDefinition(text string) json.RawMessage {
	return append(append([]byte(`{"instructions":`), quoteJSON(text)...), '}')
}

// PinLabel names what is pinned under a name, in one word, as people are shown it and type it: a tool by its name,
// what belongs to another part with the part before it. A tool whose name could be such a word has its own before it.
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
