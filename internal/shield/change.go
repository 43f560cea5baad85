package shield

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A ChangeRisk is the risk of a change to a definition. The zero value is RiskHigh, so that a change whose risk was not
// computed needs approval.
type ChangeRisk int

const (
	// RiskHigh is a change that is typical of an attack; a person must decide.
	RiskHigh ChangeRisk = iota
	// RiskReview is a change that a person should see, such as a change of a tool's text or schema.
	RiskReview
	// RiskLow is a change that does not affect a model: white space, a full stop, or an annotation that states its
	// default value.
	RiskLow
	// RiskNone means that the definitions are equal, except for the order of members.
	RiskNone
)

// String returns "high", "review", "low" or "none".
func (r ChangeRisk) String() string { return [...]string{"high", "review", "low", "none"}[r] }

// MarshalText returns the same word as String.
func (r ChangeRisk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// A DefinitionChange is one difference between two definitions.
type DefinitionChange struct {
	// Path is the JSON pointer to the value. The pointer to an element of "required", "enum" or "type" ends with the
	// element's text.
	Path string `json:"path"`
	// Class is "cosmetic", "wording", "schema", "address", "instruction" or "annotation".
	Class string     `json:"class"`
	Risk  ChangeRisk `json:"risk"`
	// Before and After are the values as JSON; empty if the value is missing.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// A Comparison is the result of comparing two definitions.
type Comparison struct {
	Risk ChangeRisk `json:"risk"`
	// NeedsApproval reports whether a person must accept the new definition before it replaces the old definition.
	NeedsApproval bool               `json:"ask"`
	Changes       []DefinitionChange `json:"changes"`
	// Reasons are the findings in the new definition that the old definition did not have.
	Reasons []Finding `json:"reasons"`
}

// CompareDefinitions returns the changes between two definitions of the same tool, prompt or template. It returns an
// error if one of the definitions is not JSON.
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
	// For such a definition, parsers may disagree about whether it changed.
	if _, plain := canonicalDefinition(after); !plain && !bytes.Equal(before, after) {
		c.Reasons = append(c.Reasons, Finding{Rule: "twice", Action: "flagged",
			Why: "has duplicate members, or nests too deeply: parsers may disagree"})
		c.Risk = RiskHigh
	}
	if len(c.Reasons) > 0 && len(c.Changes) > 0 {
		c.Risk = RiskHigh
	}
	c.NeedsApproval = c.Risk <= RiskReview
	return c, nil
}

// annotationHints are the annotations that describe a tool's effect. unsaid is the default value (MCP 2025-03-26), and
// safer is the value that claims less harm.
var annotationHints = map[string]struct{ unsaid, safer string }{
	"/annotations/readOnlyHint":    {"false", "true"},
	"/annotations/destructiveHint": {"true", "false"},
	"/annotations/idempotentHint":  {"false", "true"},
	"/annotations/openWorldHint":   {"true", "false"},
}

// classifyChange returns the class and the risk of one change, judged without the other changes of the definition. name
// is the name of the tool.
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

// isHarmlessTitleChange reports whether a change of a title adds no information. That is the case if a title that
// repeats the name was added or removed, or if the title has one more noun.
func isHarmlessTitleChange(name, before, after string) bool {
	return (before == "" || after == "") && titleSaysName(before+after, name) || addsOneNoun(before, after)
}

// isProsePath reports whether the value at a path is prose for people and models. It returns false for a value that a
// call or a schema uses.
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

// namedMembers are the members of a JSON schema whose own members have names that the server chooses.
var namedMembers = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true}

// titledName returns the name of the object to which the title at a path belongs, or "" if the object has no name.
func titledName(path, tool string) string {
	parts := strings.Split(path, "/")
	switch n := len(parts); {
	case n < 4 && !namedMembers[parts[1]]: // the title of the tool, of its annotations, or of a whole schema
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

// countAddresses returns the number of URLs and e-mail addresses in a text.
func countAddresses(text string) int { return strings.Count(text, "://") + strings.Count(text, "@") }

// onOneLine returns a JSON text with escaped line ends and tabs replaced by blanks.
func onOneLine(text string) string {
	return strings.NewReplacer(`\n`, " ", `\t`, " ", `\r`, " ").Replace(text)
}

// linkLikeWords returns the words of a text that may be an address: with a "@", with "://", or with a dot inside. A
// change of punctuation in such a word changes the address, while in prose it has no effect on the meaning.
func linkLikeWords(text string) (all []string) {
	text, _ = CanonicalText(onOneLine(text))
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

// normalizedWords returns the letters, digits and symbols of a text in lower case, without white space and punctuation.
func normalizedWords(text string) string {
	text, _ = CanonicalText(onOneLine(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// leafValues returns the values of a definition by path. The order of members has no effect on the result. The order of
// elements of "required", "enum" and "type" has no effect either, because their paths end with the element's text.
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

// maxLeafDepth limits the depth to which a definition is compared member by member, and maxLeafPath limits the size of
// a path in bytes. A value that is deeper, or has a longer path, is compared as a whole.
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
