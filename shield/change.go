package shield

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/shield/words"
)

// A Risk is how much a change of a definition matters. The zero value is High: what nobody judged is not let through.
type Risk int

const (
	// High is a change that makes a tool say or claim what only an attack would: a person decides.
	High Risk = iota
	// Review is a change of what a tool says or takes: a person should see it.
	Review
	// Low is a change that a model would not act on: white space, a full stop, a hint that says what held without it.
	Low
	// None is no change: the order of members.
	None
)

// String gives "high", "review", "low" or "none".
func (r Risk) String() string { return [...]string{"high", "review", "low", "none"}[r] }

// MarshalText gives the word for it.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// A Change is one difference between two definitions.
type Change struct {
	// Path is where, as a JSON pointer; members of "required" and of an enumeration are at their own text.
	Path string `json:"path"`
	// Class is "cosmetic", "wording", "schema", "address", "instruction" or "annotation".
	Class string `json:"class"`
	Risk  Risk   `json:"risk"`
	// Before and After are the values as JSON, empty for what was not there.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// A Comparison is what a definition's change comes to.
type Comparison struct {
	Risk Risk `json:"risk"`
	// Ask says that a person should be asked before the new definition takes the old one's place.
	Ask     bool     `json:"ask"`
	Changes []Change `json:"changes"`
	// Reasons are what rules found in the new definition and not in the old one.
	Reasons []Reason `json:"reasons"`
}

// Compare says what changed between two definitions of one card. An error means that one of them is not JSON.
func (s *Shield) Compare(before, after json.RawMessage) (Comparison, error) {
	was, err := s.Definition(before)
	if err != nil {
		return Comparison{}, err
	}
	is, err := s.Definition(after)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Risk: None, Changes: []Change{}, Reasons: []Reason{}}
	for _, r := range is.Reasons {
		if r.counts() && !slices.ContainsFunc(was.Reasons, func(w Reason) bool { return w.Path == r.Path && w.Rule == r.Rule && w.Excerpt == r.Excerpt }) {
			c.Reasons = append(c.Reasons, r)
		}
	}
	old, now := leaves(before), leaves(after)
	paths := slices.Sorted(maps.Keys(old))
	for p := range now {
		if _, ok := old[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		if old[p] == now[p] {
			continue
		}
		ch := classify(p, value(old["/name"]), old[p], now[p])
		if ch.Risk != High && slices.ContainsFunc(c.Reasons, func(r Reason) bool { return strings.HasPrefix(p, r.Path) }) {
			ch.Class, ch.Risk = "instruction", High
		}
		c.Changes = append(c.Changes, ch)
		c.Risk = min(c.Risk, ch.Risk)
	}
	if _, plain := canonical(after); !plain && !bytes.Equal(before, after) { // some readers may see no change where others do
		c.Reasons = append(c.Reasons, Reason{Rule: "twice", Did: "flagged", Why: "says something twice, or nests too deeply: two readers may read two things"})
		c.Risk = High
	}
	if len(c.Reasons) > 0 && len(c.Changes) > 0 {
		c.Risk = High
	}
	c.Ask = c.Risk <= Review
	return c, nil
}

// hints are the annotations that say what a tool does, with what holds where they are not there (MCP 2025-03-26), and the
// value that claims less harm.
var hints = map[string]struct{ unsaid, safer string }{
	"/annotations/readOnlyHint":    {"false", "true"},
	"/annotations/destructiveHint": {"true", "false"},
	"/annotations/idempotentHint":  {"false", "true"},
	"/annotations/openWorldHint":   {"true", "false"},
}

// classify judges one difference by itself, in a definition of that name.
func classify(path, name, before, after string) Change {
	c := Change{path, "schema", Review, before, after}
	if h, ok := hints[path]; ok {
		c.Class = "annotation"
		was, is := said(before, h.unsaid), said(after, h.unsaid)
		switch {
		case was == is:
			c.Risk = Low
		case is == h.safer:
			c.Risk = High
		}
		return c
	}
	was, is := value(before), value(after)
	text, title := isText(path, before, after), strings.HasSuffix(path, "/title")
	switch {
	case text && sameReading(was, is):
		c.Class, c.Risk = "cosmetic", Low
	case addresses(after) > addresses(before), newHost(was, is), text && wording(before) == wording(after) && !slices.Equal(places(before), places(after)):
		c.Class, c.Risk = "address", High
	case strings.HasPrefix(path, "/icons"), text && title && quietTitle(titled(path, name), was, is):
		c.Class, c.Risk = "wording", Low
	case text && (title || before != "" && after != ""):
		c.Class = "wording"
	case strings.HasPrefix(path, "/annotations/"):
		c.Class = "annotation"
	}
	return c
}

// quietTitle says whether a title's change tells nothing new: one comes or goes that says the name, or names one thing more.
func quietTitle(name, before, after string) bool {
	return (before == "" || after == "") && saysName(before+after, name) || namesOneMore(before, after)
}

// isText says whether what stands at a path are words about a thing, and no value that a call or a schema has.
func isText(path, before, after string) bool {
	for _, v := range []string{before, after} {
		if v != "" && v[0] != '"' {
			return false
		}
	}
	parts := strings.Split(path, "/")
	last := len(parts) - 1
	for i, part := range parts[:last] {
		switch part {
		case "required", "enum", "type", "default", "const", "examples", "example":
			if i == 0 || !named[parts[i-1]] {
				return false
			}
		}
	}
	switch parts[last] {
	case "description", "title", "$comment", "$schema":
		return !named[parts[last-1]]
	}
	return path == "/instructions"
}

// named are the members of a schema whose members are named as the server likes.
var named = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true}

// titled gives the name of what the title at a path is that of; nothing where it has none.
func titled(path, tool string) string {
	parts := strings.Split(path, "/")
	switch n := len(parts); {
	case n < 4 && !named[parts[1]]: // its own, in its annotations, and of a schema as a whole
		return tool
	case named[parts[n-3]]:
		return strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[n-2])
	}
	return ""
}

func said(value, unsaid string) string {
	if value == "" || value == "null" {
		return unsaid
	}
	return value
}

// addresses counts the URLs and mail addresses of a text.
func addresses(text string) int { return strings.Count(text, "://") + strings.Count(text, "@") }

// oneLine gives a text of JSON with blanks in the place of the ends of lines.
func oneLine(text string) string {
	return strings.NewReplacer(`\n`, " ", `\t`, " ", `\r`, " ").Replace(text)
}

// places gives what in a text may lead somewhere: words with a "@", a colon and slashes, or a dot within. A dot more makes them others,
// and of prose it does not.
func places(text string) (all []string) {
	text, _ = words.Canonical(oneLine(text))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`()[]{}<>,;|", r) }) {
		word = strings.ToLower(strings.TrimRight(word, ".:!?/*_\\"))
		if last := word[strings.LastIndexByte(word, '.')+1:]; strings.Contains(word, "://") || strings.Contains(word, "@") ||
			len(last) < len(word) && len(last) > 1 && strings.Trim(word, ".") == word && !strings.ContainsFunc(last, unicode.IsNumber) {
			all = append(all, word)
		}
	}
	return all
}

// wording gives a text without what does not change its words: case, white space, punctuation.
func wording(text string) string {
	text, _ = words.Canonical(oneLine(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// leaves gives the values of a definition by path. The order of members does not count, nor that of "required", "enum" and
// "type", whose members are at their own text.
func leaves(raw json.RawMessage) map[string]string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	all := map[string]string{}
	flatten(all, "", v)
	return all
}

// deepestLeaf bounds how deep a definition is compared member by member, longestLeaf how many bytes a path to one has; what lies deeper,
// or under longer names, is one value.
const (
	deepestLeaf = 64
	longestLeaf = 1024
)

func longestName(object map[string]any) (n int) {
	for name := range object {
		n = max(n, len(name))
	}
	return n
}

func flatten(all map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 && strings.Count(path, "/") < deepestLeaf && longestName(v) < longestLeaf-len(path) {
			for k, m := range v {
				flatten(all, path+"/"+segment(k), m)
			}
			return
		}
	case []any:
		if len(v) > 0 && strings.Count(path, "/") < deepestLeaf {
			set := strings.HasSuffix(path, "/required") || strings.HasSuffix(path, "/enum") || strings.HasSuffix(path, "/type")
			for i, m := range v {
				if s, ok := m.(string); ok && set {
					all[path+"/"+s] = string(quote(s))
				} else {
					flatten(all, path+"/"+strconv.Itoa(i), m)
				}
			}
			return
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte("?")
	}
	all[path] = string(b)
}
