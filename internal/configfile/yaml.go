package configfile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxYAMLNodes is the maximum number of nodes in a YAML file with its aliases expanded. Without a limit, a few lines
// with aliases could expand to billions of nodes.
const maxYAMLNodes = 200_000

// ParseYAML parses the first document of a YAML file, which must be a mapping. Aliases and merge keys are expanded. The
// error is an *Error.
func ParseYAML(data []byte) (Node, error) {
	if line := tooDeepFlowLine(data); line > 0 {
		return Node{}, ErrorAt(line, "values nest deeper than %d", MaxDepth)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(data, &file); err != nil {
		return Node{}, yamlError(err)
	}
	if len(file.Content) == 0 {
		return Node{}, ErrorAt(1, "the file is empty")
	}
	r := &yamlReader{}
	n := r.readNode(file.Content[0], 0)
	if r.err == nil && n.Kind != Table {
		r.err = ErrorAt(n.Line, "the file must hold a mapping")
	}
	if r.err != nil {
		return Node{}, r.err
	}
	return n, nil
}

// tooDeepFlowLine returns the first line with more brackets or more indentation than in a normal file; 0 if there is
// none. Such lines are rejected, because the parser's time grows with the square of the nesting depth.
func tooDeepFlowLine(data []byte) int {
	const most = 10 * MaxDepth // brackets may also be in strings
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > most {
			return line
		}
		if indent := len(text) - len(bytes.TrimLeft(text, " -?")); indent > most {
			return line
		}
	}
	return 0
}

// yamlError returns the parser's error. Its text contains neither the position nor quoted values, which may be secrets.
func yamlError(err error) *Error {
	e := &Error{Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	if _, scanned := fmt.Sscanf(e.Text, "line %d:", &e.Line); scanned == nil {
		_, e.Text, _ = strings.Cut(e.Text, ": ")
	}
	e.Text = safetext.Line(quotedValue().ReplaceAllString(e.Text, "…"))
	return e
}

// A yamlReader converts the parser's nodes to Nodes.
type yamlReader struct {
	nodes int
	err   *Error
}

func (r *yamlReader) readNode(v *yaml.Node, depth int) Node {
	n := Node{Line: v.Line}
	r.nodes++
	switch {
	case r.err != nil:
		return n
	case depth > MaxDepth: // an alias inside its own anchor also ends here
		r.err = ErrorAt(v.Line, "values nest deeper than %d", MaxDepth)
		return n
	case r.nodes > maxYAMLNodes:
		r.err = ErrorAt(v.Line, "the file has too many values")
		return n
	}
	switch v.Kind {
	case yaml.AliasNode:
		n = r.readNode(v.Alias, depth+1)
		n.Line = v.Line
	case yaml.SequenceNode:
		n.Kind = List
		for _, item := range v.Content {
			n.Items = append(n.Items, r.readNode(item, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Table
		n.Members = r.readMapping(v, depth)
	case yaml.ScalarNode:
		n.Kind, n.Text = scalarValue(v)
	}
	return n
}

// readMapping reads a mapping. Members from a merge key ("<<") come last. They are omitted if the mapping itself has a
// member of that name.
func (r *yamlReader) readMapping(v *yaml.Node, depth int) []Member {
	var own, merged []Member
	names := map[string]bool{}
	for i := 0; i+1 < len(v.Content) && r.err == nil; i += 2 {
		key, value := v.Content[i], v.Content[i+1]
		if key.ShortTag() == "!!merge" {
			from := r.readNode(value, depth+1)
			for _, item := range append([]Node{from}, from.Items...) {
				merged = append(merged, item.Members...)
			}
			continue
		}
		for range 1 + MaxDepth {
			if key.Kind != yaml.AliasNode {
				break
			}
			key = key.Alias
		}
		names[key.Value] = true
		own = append(own, Member{key.Value, key.Line, r.readNode(value, depth+1)})
	}
	for _, m := range merged {
		if !names[m.Name] {
			names[m.Name] = true
			own = append(own, m)
		}
	}
	return slices.Clip(own)
}

// scalarValue returns the kind of a scalar, and its text as in a Node.
func scalarValue(v *yaml.Node) (ValueKind, string) {
	var value any
	switch v.ShortTag() {
	case "!!null":
		return Null, ""
	case "!!bool", "!!int", "!!float":
		if v.Decode(&value) != nil {
			return Text, v.Value
		}
	}
	switch value := value.(type) {
	case bool:
		return Boolean, strconv.FormatBool(value)
	case int, int64, uint64:
		return Number, fmt.Sprint(value)
	case float64:
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			return Number, strconv.FormatFloat(value, 'g', -1, 64)
		}
	}
	return Text, v.Value
}
