package guards

import (
	"strings"
	"sync"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// A Description is a text of a server that the model always sees: the definition of a tool, or the instructions of the
// server, if Tool is empty.
type Description struct {
	Server drawbridge.ServerID
	Tool   string
	// Text is what the text says. Schema is the rest of the definition, which does not count in calls of the same tool.
	Text, Schema string
}

// Descriptions returns the descriptions of all servers, and a number that changes if they change.
type Descriptions interface {
	Descriptions() []Description
	ListVersion() uint64
}

// minDescribed is the size in bytes of the shortest value that is searched for in descriptions.
const minDescribed = 4

// describedTexts are the descriptions of servers that are not trusted, in lower case.
type describedTexts struct {
	mu      sync.Mutex
	version uint64
	known   bool
	all     []Description
}

// described returns the source of a value that stands in a description of a server that is not trusted; nil if there is
// none. Plain words stand in many descriptions and do not count.
func (g *FlowGuard) described(q *deck.Question, value string) *flow.Source {
	isSign := func(c rune) bool { return !unicode.IsLetter(c) }
	if value = strings.TrimSpace(value); g.o.Descriptions == nil || len(value) < minDescribed || !strings.ContainsFunc(value, isSign) {
		return nil
	}
	for _, d := range g.descriptions() {
		own := d.Server == q.Spec.Server && d.Tool == q.Spec.Tool
		if flow.Contains(d.Text, value) || !own && flow.Contains(d.Schema, value) {
			name := string(d.Server)
			if d.Tool != "" {
				name += " " + d.Tool
			}
			return &flow.Source{Kind: "description", Name: name, Server: string(d.Server), Label: flow.Label{Integrity: flow.Untrusted}}
		}
	}
	return nil
}

// descriptions returns the descriptions of servers that are not trusted, in lower case.
func (g *FlowGuard) descriptions() []Description {
	t := &g.texts
	t.mu.Lock()
	defer t.mu.Unlock()
	if version := g.o.Descriptions.ListVersion(); !t.known || version != t.version {
		t.all, t.known, t.version = nil, true, version
		for _, d := range g.o.Descriptions.Descriptions() {
			if !g.rows.trusted(d.Server) {
				d.Text, d.Schema = strings.ToLower(d.Text), strings.ToLower(d.Schema)
				t.all = append(t.all, d)
			}
		}
	}
	return t.all
}
