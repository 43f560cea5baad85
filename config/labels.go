package config

import (
	"path"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// A ToolLabel sets labels for the results of some tools of a server. They lower the integrity that follows from the
// trust of the server, and never raise it.
type ToolLabel struct {
	// Tools is a glob of the server's own names of tools.
	Tools string
	// Words are labels, such as "private" and "untrusted"; see [flow.Words].
	Words []string
}

// readLabels reads the member labels of a row: a word, a list of words, or an object from globs of tools to these.
func (r *rowReader) readLabels(v configfile.Node) {
	if v.Kind != configfile.Table {
		r.addLabels("*", v)
		return
	}
	for _, m := range v.Members {
		if _, err := path.Match(m.Name, ""); err != nil {
			r.refuse("%q in labels is not a pattern of tools", m.Name)
		}
		r.addLabels(m.Name, m.Value)
	}
}

func (r *rowReader) addLabels(tools string, v configfile.Node) {
	words, ok := v.TextValues()
	if word, isText := v.TextValue(); isText {
		words, ok = []string{word}, true
	}
	if !ok || slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(flow.Words(), word) }) {
		r.refuse("%q must be %s, a list of these, or an object of these by tool", "labels", configfile.JoinOr(flow.Words()))
		return
	}
	r.server.Labels = append(r.server.Labels, ToolLabel{Tools: tools, Words: words})
}
