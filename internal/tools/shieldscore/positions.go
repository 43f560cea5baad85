package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A position is a place in a definition whose text the server chooses. put inserts a sentence into a tool at that
// place.
type position struct {
	name string
	put  func(t *tool, sentence string)
}

// A tool is a tool definition with all members that a position may change.
type tool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Input       map[string]any `json:"inputSchema"`
	Output      map[string]any `json:"outputSchema,omitempty"`
	Annotations map[string]any `json:"annotations,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// honest returns a tool definition that contains no instruction to a model.
func honest() *tool {
	return &tool{
		Name: "get_weather", Description: "Gets the weather of a city.",
		Input: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string",
			"description": "Name of the city."}}},
	}
}

// property returns the schema of the tool's input with that name, and creates the schema if necessary.
func (t *tool) property(name string) map[string]any {
	all := t.Input["properties"].(map[string]any)
	if all[name] == nil {
		all[name] = map[string]any{"type": "string"}
	}
	return all[name].(map[string]any)
}

// positions returns all places in a tool definition that are tested. The places for prose come first.
func positions() []position {
	in := func(member string, wrap func(string) any) func(*tool, string) {
		return func(t *tool, s string) { t.property("city")[member] = wrap(s) }
	}
	bare := func(s string) any { return s }
	list := func(s string) any { return []string{"Bern", s} }
	return []position{
		{"description", func(t *tool, s string) { t.Description += " " + s }},
		{"description, first", func(t *tool, s string) { t.Description = s + " " + t.Description }},
		{"schema description", func(t *tool, s string) { t.Input["description"] = s }},
		{"property description", in("description", bare)},
		{"property description, after prose",
			in("description", func(s string) any { return "Name of the city. " + s })},
		{"nested description", func(t *tool, s string) {
			t.property("options")["properties"] = map[string]any{"deep": map[string]any{"items": map[string]any{"description": s}}}
		}},
		{"description in $defs",
			func(t *tool, s string) { t.Input["$defs"] = map[string]any{"place": map[string]any{"description": s}} }},
		{"output schema", func(t *tool, s string) {
			t.Output = map[string]any{"properties": map[string]any{"sky": map[string]any{"description": s}}}
		}},
		{"_meta", func(t *tool, s string) { t.Meta = map[string]any{"note": s} }},
		{"annotations", func(t *tool, s string) { t.Annotations = map[string]any{"note": s} }},
		{"title", func(t *tool, s string) { t.Title = s }},
		{"annotations title", func(t *tool, s string) { t.Annotations = map[string]any{"title": s} }},
		{"property title", in("title", bare)},
		{"$comment", func(t *tool, s string) { t.Input["$comment"] = s }},
		{"default", in("default", bare)},
		{"const", in("const", bare)},
		{"enum", in("enum", list)},
		{"examples", in("examples", list)},
		{"pattern", in("pattern", bare)},
		{"property name", func(t *tool, s string) { t.property(snake(s, 120)) }},
		{"tool name", func(t *tool, s string) { t.Name = snake(s, 64) }},
	}
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// snake returns a name made of the words of a sentence, with "_" between them and at most most bytes.
func snake(s string, most int) string {
	s = strings.Trim(noName.ReplaceAllString(strings.ToLower(s), "_"), "_")
	return s[:min(len(s), most)]
}

// orders returns the sentences in rows that are instructions to a model. The class of a row determines in which member
// the sentence is.
func orders(rows []row) (all []string) {
	for _, r := range rows {
		var t struct {
			Description, Title string
			Annotations        struct{ Title string }
			InputSchema        struct {
				Comment string `json:"$comment"`
			}
		}
		if r.Tool == nil || json.Unmarshal(r.Tool, &t) != nil {
			continue
		}
		s := ""
		switch r.Class {
		case "order", "plain":
			_, s, _ = strings.Cut(t.Description, ". ")
		case "title_field":
			s = t.Title
		case "annotations_title":
			s = t.Annotations.Title
		case "schema_comment":
			s = t.InputSchema.Comment
		}
		if s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// encode returns a tool as JSON. If the tool cannot be encoded, it returns null, in which the shield finds nothing.
func encode(t *tool) json.RawMessage {
	raw, err := json.Marshal(t)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// seen returns, for each position, the number of sentences that the shield detects there. The counts have the order of
// positions.
func seen(s *shield.Shield, sentences []string) ([]int, error) {
	all := positions()
	counts := make([]int, len(all))
	for i, p := range all {
		for _, sentence := range sentences {
			t := honest()
			p.put(t, sentence)
			report, err := s.CheckDefinition(encode(t))
			if err != nil {
				return nil, err
			}
			if report.Verdict != shield.VerdictClean {
				counts[i]++
			}
		}
	}
	return counts, nil
}

// spread prints, for each position, the share of the instructions in rows that the shield detects there. It also prints
// the difference between the largest and the smallest share.
func spread(s *shield.Shield, name string, rows []row) error {
	sentences := orders(rows)
	if len(sentences) == 0 {
		return nil
	}
	counts, err := seen(s, sentences)
	if err != nil {
		return err
	}
	for i, p := range positions() {
		fmt.Printf("%-18s position %-36s %5.1f %% of %d\n", name, p.name,
			share(counts[i], len(sentences)), len(sentences))
	}
	fmt.Printf("%-18s spread %.1f points\n\n", name, share(slices.Max(counts)-slices.Min(counts), len(sentences)))
	return nil
}
