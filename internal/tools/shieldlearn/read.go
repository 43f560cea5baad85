package main

import (
	"bufio"
	_ "embed" // the sentences that were written to learn from
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

//go:embed orders.txt
var orders string

//go:embed honest.txt
var honest string

// A text is one of a row, with how much it counts.
type text struct {
	of        string // the row
	own       string // the source of the row, and carrier that of the honest tool around its order
	carrier   string
	catalogue int // where that is from: 0 is the labelled rows
	about     injection.WordTopic
	order     bool
	tool      bool // of a definition
	met       bool // by a rule
	at        injection.TextPlace
	counts    float64
	score     float64 // what its heaviest sentence weighs, to a model that was learned without it
	sentences []*sentence
}

// A sentence is what the scale sees of one.
type sentence struct {
	slots  []uint32 // in the table that is learned
	order  bool
	counts float64
	// inAnswers are those in the table for answers, of a sentence that is learned from for definitions.
	inAnswers []uint32
	// strange shares no word with its document; mention talks about an attack.
	strange, mention bool
}

// asAnswer is the text to learn from for answers.
func (t text) asAnswer() *text {
	all := make([]*sentence, len(t.sentences))
	for i, s := range t.sentences {
		all[i] = &sentence{slots: s.inAnswers, strange: s.strange, mention: s.mention}
	}
	t.sentences = all
	return &t
}

// A lesson is what is learned from, and the orders that are not.
type lesson struct {
	in            *injection.Inspector
	honest        map[string]bool // sentences of honest rows
	catalogues    int
	texts, unseen []*text
	rows          []row // the definitions among the labelled rows
}

// A labelled row of a file, as internal/shieldscore has it.
type row struct {
	ID, Label, Class, Tier, Source, Server string
	Tool                                   json.RawMessage
	Text                                   string
	catalogue                              int
	own, carrier                           string
}

// read takes in all there is: the honest first, so that what a row with an order shares with them is known.
func (l *lesson) read(dir, tools string) error {
	l.catalogues = 1
	for file := range strings.SplitSeq(tools, ",") {
		l.catalogues++
		if err := each(file, func(n int, line []byte) error {
			r := row{ID: fmt.Sprint(file, n), catalogue: l.catalogues - 1}
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			return l.definition(r, line, 1)
		}); err != nil {
			return err
		}
	}
	for _, name := range []string{"tools_benign", "results_benign", "tools_malicious", "results_malicious"} {
		if err := each(filepath.Join(dir, name+".jsonl"), func(_ int, line []byte) error {
			var r row
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			return l.row(r)
		}); err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory may lack a kind of rows
			return err
		}
	}
	v, err := newVariety("internal/injection/kinds.txt")
	if err != nil {
		return err
	}
	for line := range strings.Lines(orders) {
		for _, s := range v.order(strings.TrimSpace(line)) {
			l.add(&text{order: true, counts: 3}, s)
		}
	}
	for line := range strings.Lines(honest) {
		l.add(&text{counts: 3}, strings.TrimSpace(line))
		for range 12 {
			l.add(&text{counts: 3}, v.other(strings.TrimSpace(line)))
		}
	}
	return each("internal/shield/testdata/tools_malicious.jsonl", l.sample)
}

// sample keeps the orders of the sample that nothing is learned from.
func (l *lesson) sample(_ int, line []byte) error {
	var r struct {
		Class string
		Tool  struct{ Name, Description string }
	}
	if err := json.Unmarshal(line, &r); err != nil || r.Class != "plain" {
		return err
	}
	t := &text{at: injection.PlaceDescription, about: l.in.TopicOf(r.Tool.Name, r.Tool.Description)}
	_, s, _ := strings.Cut(r.Tool.Description, ". ")
	l.put(t, s)
	l.unseen = append(l.unseen, t)
	return nil
}

// row takes in a labelled row. What is in code, in other languages or in the sample's plain words teaches no order.
func (l *lesson) row(r row) error {
	r.own, r.carrier = sourcesOf(r.Source)
	if r.Tool != nil {
		l.rows = append(l.rows, r)
	}
	switch {
	case r.Label == "malicious" && (r.Tier == "C" || strings.Contains(r.Class, "encoded") || strings.Contains(r.Class,
		"multilingual")), r.Class == "plain", r.Class == "order":
		return nil
	case r.Tool != nil:
		return l.definition(r, r.Tool, counts(r))
	}
	l.add(&text{of: r.ID, own: r.own, carrier: r.carrier, order: r.Label == "malicious", counts: counts(r)}, r.Text)
	return nil
}

// counts returns the weight of a row: a row with an order, or one that resembles it, counts three times.
func counts(r row) float64 {
	if r.Label == "malicious" || strings.Contains(r.Class, "legit") || strings.Contains(r.Class, "hard") ||
		strings.Contains(r.Class, "security") || strings.Contains(r.Class, "quoted") {
		return 3
	}
	return 1
}

// definition adds the texts of a tool definition to the lesson.
func (l *lesson) definition(r row, raw []byte, counts float64) error {
	var tool struct {
		Name, Title, Description string
		Annotations, Meta        any
		Input                    any `json:"inputSchema"`
		Output                   any `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return err
	}
	names := []string{tool.Name, tool.Description}
	for _, part := range []any{tool.Input, tool.Output} {
		properties(part, &names)
	}
	about := l.in.TopicOf(names...)
	put := func(at injection.TextPlace, s string) {
		l.add(&text{about: about, catalogue: r.catalogue, of: r.ID, own: r.own, carrier: r.carrier, order: r.Label == "malicious", tool: true, at: at,
			counts: counts}, s)
	}
	put(injection.PlaceDescription, tool.Description)
	put(injection.PlaceMember, tool.Title)
	for _, part := range []any{tool.Annotations, tool.Input, tool.Output} {
		members(part, "", put)
	}
	return nil
}

// properties collects the names of a schema's properties.
func properties(v any, names *[]string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			properties(x, names)
		}
	case map[string]any:
		for k, x := range v {
			if all, ok := x.(map[string]any); ok && k == "properties" {
				*names = slices.AppendSeq(*names, maps.Keys(all))
			}
			properties(x, names)
		}
	}
}

// members passes the texts of a schema to put, with their places.
func members(v any, name string, put func(injection.TextPlace, string)) {
	switch v := v.(type) {
	case string:
		at := injection.PlaceMember
		if name == "description" {
			at = injection.PlaceSchema
		}
		put(at, v)
	case []any:
		for _, x := range v {
			members(x, name, put)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k == "type" || k == "$ref" || k == "format" {
				continue
			}
			if strings.Count(k, "_") > 6 {
				put(injection.PlaceMember, k)
			}
			members(v[k], k, put)
		}
	}
}

// add takes in a text: of one with an order the sentences that a rule sees and no honest row has, where it is of a row.
func (l *lesson) add(t *text, s string) {
	l.put(t, s)
	if len(t.sentences) > 0 {
		l.texts = append(l.texts, t)
	}
}

func (l *lesson) put(t *text, s string) {
	canonical, _ := injection.CanonicalText(s)
	t.met = t.tool && l.met(canonical)
	for _, of := range l.in.Sentences(canonical, t.about, t.at == injection.PlaceDescription) {
		switch {
		case !t.order && t.of != "":
			l.honest[of.Text] = true
		case t.order && t.of != "" && (l.honest[of.Text] || !l.met(of.Text)):
			continue
		}
		t.sentences = append(t.sentences, &sentence{slots: of.DefinitionSlots, inAnswers: of.AnswerSlots,
			strange: of.OffTopic, mention: of.Mention})
	}
}

// met reports whether a rule detects an order in a sentence.
func (l *lesson) met(s string) bool {
	return slices.ContainsFunc(l.in.Inspect(s, injection.FromDefinitions, injection.PlaceNone, nil),
		func(f injection.Finding) bool { return f.Act > injection.ActionNote })
}

// each passes the lines of a file to take, with their numbers. An empty name means an empty file.
func each(file string, take func(n int, line []byte) error) error {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if err := take(n, lines.Bytes()); err != nil {
			return fmt.Errorf("read %s: line %d: %w", file, n, err)
		}
	}
	return lines.Err()
}
