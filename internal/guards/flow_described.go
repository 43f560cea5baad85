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

// minDescribed is the size in bytes of the shortest value that is searched for in descriptions, and minWritten that of
// the shortest one that is searched for in another spelling too.
const minDescribed, minWritten = 4, 8

// maxDescriptions is how many descriptions are searched. With more, the oldest are dropped.
const maxDescriptions = 10_000

// describedTexts are the descriptions of servers that are not trusted, also those that have changed since.
type describedTexts struct {
	mu      sync.Mutex
	version uint64
	known   bool
	all     []Description // in lower case
	flat    []string      // their letters and digits
}

// described returns the description of a server that is not trusted in which a value stands, or an address or a number
// in the value; nil if there is none. Plain words are not searched for, since they stand in many descriptions. A value
// with a digit is found with other spaces and signs too.
func (g *FlowGuard) described(q *deck.Question, value string) *flow.Source {
	if g.o.Descriptions == nil {
		return nil
	}
	all, flat := g.descriptions()
	find := func(value string) *flow.Source {
		flatValue := lettersAndDigits(strings.ToLower(value))
		if len(flatValue) < minWritten || !strings.ContainsFunc(flatValue, unicode.IsDigit) {
			flatValue = ""
		}
		for i, d := range all {
			own := d.Server == q.Spec.Server && d.Tool == q.Spec.Tool
			if flow.Contains(d.Text, value) || !own && flow.Contains(d.Schema, value) ||
				flatValue != "" && strings.Contains(flat[i], flatValue) {
				return &flow.Source{Kind: "description", Name: strings.TrimSpace(string(d.Server) + " " + d.Tool),
					Server: string(d.Server), Label: flow.Label{Integrity: flow.Untrusted}}
			}
		}
		return nil
	}
	isSign := func(c rune) bool { return !unicode.IsLetter(c) }
	if value = strings.TrimSpace(value); len(value) >= minDescribed && strings.ContainsFunc(value, isSign) {
		if s := find(value); s != nil {
			return s
		}
	}
	for word := range strings.FieldsSeq(value) {
		if word = strings.Trim(word, "\"'`()[]{}<>,;|"); len(word) < len(value) && isAddress(word) {
			if s := find(word); s != nil {
				return s
			}
		}
	}
	return nil
}

// isAddress reports whether a word is an address, or a number of at least four digits with letters, as of an account.
func isAddress(word string) bool {
	digits, letters := 0, 0
	for _, c := range word {
		digits, letters = digits+oneIf(unicode.IsDigit(c)), letters+oneIf(unicode.IsLetter(c))
	}
	isNumber := digits >= 4 && letters > 0
	return len(word) >= minWritten && (isNumber || strings.Contains(word, "://") || strings.Contains(word, "@"))
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// lettersAndDigits returns a text without all other characters.
func lettersAndDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, text)
}

// NoteDescriptions notes the present descriptions, which a model is about to see. They count also if the server changes
// them later.
func (g *FlowGuard) NoteDescriptions() {
	if g.o.Descriptions != nil {
		g.descriptions()
	}
}

// descriptions returns the descriptions of servers that are not trusted, in lower case, and the letters and digits of
// their texts. The slices must not be changed.
func (g *FlowGuard) descriptions() (all []Description, flat []string) {
	t := &g.texts
	t.mu.Lock()
	defer t.mu.Unlock()
	version := g.o.Descriptions.ListVersion()
	if t.known && version == t.version {
		return t.all, t.flat
	}
	known := make(map[Description]bool, len(t.all))
	for _, d := range t.all {
		known[d] = true
	}
	for _, d := range g.o.Descriptions.Descriptions() {
		d.Text, d.Schema = strings.ToLower(d.Text), strings.ToLower(d.Schema)
		if !known[d] && !g.rows.trusted(d.Server) {
			t.all, t.flat = append(t.all, d), append(t.flat, lettersAndDigits(d.Text))
		}
	}
	over := max(len(t.all)-maxDescriptions, 0)
	t.all, t.flat = t.all[over:], t.flat[over:]
	t.known, t.version = true, version
	return t.all, t.flat
}
