package shield

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

// A ChangeRisk is how much a change of a definition matters. The zero value is High: what nobody judged is not let
// through.
type ChangeRisk int

const (
	// RiskHigh is a change that makes a tool say or claim what only an attack would: a person decides.
	RiskHigh ChangeRisk = iota
	// RiskReview is a change of what a tool says or takes: a person should see it.
	RiskReview
	// RiskLow is a change that a model would not act on: white space, a full stop, a hint that says what held without
	// it.
	RiskLow
	// RiskNone is no change: the order of members.
	RiskNone
)

// String returns "high", "review", "low" or "none".
func (r ChangeRisk) String() string { return [...]string{"high", "review", "low", "none"}[r] }

// MarshalText returns the word for it.
func (r ChangeRisk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// A DefinitionChange is one difference between two definitions.
type DefinitionChange struct {
	// Path is where, as a JSON pointer; members of "required" and of an enumeration are at their own text.
	Path string `json:"path"`
	// Class is "cosmetic", "wording", "schema", "address", "instruction" or "annotation".
	Class string     `json:"class"`
	Risk  ChangeRisk `json:"risk"`
	// Before and After are the values as JSON, empty for what was not there.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// A Comparison is what a definition's change comes to.
type Comparison struct {
	Risk ChangeRisk `json:"risk"`
	// NeedsApproval reports that a person should be asked before the new definition takes the old one's place.
	NeedsApproval bool               `json:"ask"`
	Changes       []DefinitionChange `json:"changes"`
	// Reasons are what rules found in the new definition and not in the old one.
	Reasons []Finding `json:"reasons"`
}

// CompareDefinitions says what changed between two definitions of one card. An error means that one of them is not
// JSON.
func (s *Shield) CompareDefinitions(before, after json.RawMessage) (Comparison, error) {
	was, err := s.CheckDefinition(before)
	if err != nil {
		return Comparison{}, err
	}
	is, err := s.CheckDefinition(after)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Risk: RiskNone, Changes: []DefinitionChange{}, Reasons: []Finding{}}
	for _, r := range is.Reasons {
		if r.affectsVerdict() && !slices.ContainsFunc(was.Reasons, func(w Finding) bool {
			return w.Path == r.Path &&
				w.Rule == r.Rule && w.Excerpt == r.Excerpt
		}) {
			c.Reasons = append(c.Reasons, r)
		}
	}
	old, now := leafValues(before), leafValues(after)
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
		ch := classifyChange(p, jsonText(old["/name"]), old[p], now[p])
		if ch.Risk != RiskHigh && slices.ContainsFunc(c.Reasons,
			func(r Finding) bool { return strings.HasPrefix(p, r.Path) }) {
			ch.Class, ch.Risk = "instruction", RiskHigh
		}
		c.Changes = append(c.Changes, ch)
		c.Risk = min(c.Risk, ch.Risk)
	}
	// some readers may see no change where others do
	if _, plain := canonicalDefinition(after); !plain && !bytes.Equal(before, after) {
		c.Reasons = append(c.Reasons, Finding{Rule: "twice", Action: "flagged",
			Why: "says something twice, or nests too deeply: two readers may read two things"})
		c.Risk = RiskHigh
	}
	if len(c.Reasons) > 0 && len(c.Changes) > 0 {
		c.Risk = RiskHigh
	}
	c.NeedsApproval = c.Risk <= RiskReview
	return c, nil
}

// annotationHints are the annotations that say what a tool does, with what holds where they are not there (MCP
// 2025-03-26), and the value that claims less harm.
var annotationHints = map[string]struct{ unsaid, safer string }{
	"/annotations/readOnlyHint":    {"false", "true"},
	"/annotations/destructiveHint": {"true", "false"},
	"/annotations/idempotentHint":  {"false", "true"},
	"/annotations/openWorldHint":   {"true", "false"},
}

// classifyChange judges one difference by itself, in a definition of that name.
func classifyChange(path, name, before, after string) DefinitionChange {
	c := DefinitionChange{path, "schema", RiskReview, before, after}
	if h, ok := annotationHints[path]; ok {
		c.Class = "annotation"
		was, is := valueOrDefault(before, h.unsaid), valueOrDefault(after, h.unsaid)
		switch {
		case was == is:
			c.Risk = RiskLow
		case is == h.safer:
			c.Risk = RiskHigh
		}
		return c
	}
	was, is := jsonText(before), jsonText(after)
	text, title := isProsePath(path, before, after), strings.HasSuffix(path, "/title")
	switch {
	case text && sameReading(was, is):
		c.Class, c.Risk = "cosmetic", RiskLow
	case countAddresses(after) > countAddresses(before), namesNewHost(was, is), text &&
		normalizedWords(before) == normalizedWords(after) && !slices.Equal(linkLikeWords(before), linkLikeWords(after)):
		c.Class, c.Risk = "address", RiskHigh
	case strings.HasPrefix(path, "/icons"), text && title && isHarmlessTitleChange(titledName(path, name), was, is):
		c.Class, c.Risk = "wording", RiskLow
	case text && (title || before != "" && after != ""):
		c.Class = "wording"
	case strings.HasPrefix(path, "/annotations/"):
		c.Class = "annotation"
	}
	return c
}

// isHarmlessTitleChange reports whether a title's change tells nothing new: one comes or goes that says the name, or
// names one thing more.
func isHarmlessTitleChange(name, before, after string) bool {
	return (before == "" || after == "") && titleSaysName(before+after, name) || addsOneNoun(before, after)
}

// isProsePath reports whether what stands at a path are words about a thing, and no value that a call or a schema has.
func isProsePath(path, before, after string) bool {
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
			if i == 0 || !namedMembers[parts[i-1]] {
				return false
			}
		}
	}
	switch parts[last] {
	case "description", "title", "$comment", "$schema":
		return !namedMembers[parts[last-1]]
	}
	return path == "/instructions"
}

// namedMembers are the members of a schema whose members are named as the server likes.
var namedMembers = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true}

// titledName returns the name of what the title at a path is that of; nothing where it has none.
func titledName(path, tool string) string {
	parts := strings.Split(path, "/")
	switch n := len(parts); {
	case n < 4 && !namedMembers[parts[1]]: // its own, in its annotations, and of a schema as a whole
		return tool
	case namedMembers[parts[n-3]]:
		return strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[n-2])
	}
	return ""
}

func valueOrDefault(value, unsaid string) string {
	if value == "" || value == "null" {
		return unsaid
	}
	return value
}

// countAddresses counts the URLs and mail addresses of a text.
func countAddresses(text string) int { return strings.Count(text, "://") + strings.Count(text, "@") }

// onOneLine returns a text of JSON with blanks in the place of the ends of lines.
func onOneLine(text string) string {
	return strings.NewReplacer(`\n`, " ", `\t`, " ", `\r`, " ").Replace(text)
}

// linkLikeWords returns what in a text may lead somewhere: words with a "@", a colon and slashes, or a dot within. A
// dot more makes them others, and of prose it does not.
func linkLikeWords(text string) (all []string) {
	text, _ = injection.CanonicalText(onOneLine(text))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) ||
			strings.ContainsRune("\"'`()[]{}<>,;|", r)
	}) {
		word = strings.ToLower(strings.TrimRight(word, ".:!?/*_\\"))
		if last := word[strings.LastIndexByte(word, '.')+1:]; strings.Contains(word, "://") ||
			strings.Contains(word, "@") ||
			len(last) < len(word) && len(last) > 1 && strings.Trim(word, ".") == word && !strings.ContainsFunc(last,
				unicode.IsNumber) {
			all = append(all, word)
		}
	}
	return all
}

// normalizedWords returns a text without what does not change its words: case, white space, punctuation.
func normalizedWords(text string) string {
	text, _ = injection.CanonicalText(onOneLine(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// leafValues returns the values of a definition by path. The order of members does not count, nor that of "required",
// "enum" and "type", whose members are at their own text.
func leafValues(raw json.RawMessage) map[string]string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	all := map[string]string{}
	flattenInto(all, "", v)
	return all
}

// maxLeafDepth bounds how deep a definition is compared member by member, maxLeafPath how many bytes a path to one
// has; what lies deeper, or under longer names, is one value.
const (
	maxLeafDepth = 64
	maxLeafPath  = 1024
)

func longestNameLen(object map[string]any) (n int) {
	for name := range object {
		n = max(n, len(name))
	}
	return n
}

func flattenInto(all map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 && strings.Count(path, "/") < maxLeafDepth && longestNameLen(v) < maxLeafPath-len(path) {
			for k, m := range v {
				flattenInto(all, path+"/"+pointerSegment(k), m)
			}
			return
		}
	case []any:
		if len(v) > 0 && strings.Count(path, "/") < maxLeafDepth {
			set := strings.HasSuffix(path, "/required") || strings.HasSuffix(path, "/enum") ||
				strings.HasSuffix(path, "/type")
			for i, m := range v {
				if s, ok := m.(string); ok && set {
					all[path+"/"+s] = string(quoteJSON(s))
				} else {
					flattenInto(all, path+"/"+strconv.Itoa(i), m)
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
