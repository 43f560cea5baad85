package main

import (
	"bufio"
	_ "embed" // for orders and honest sentences to learn from
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

//go:embed orders.txt
var orders string

//go:embed honest.txt
var honest string

// A text is a training text with its properties.
type text struct {
	of        string // the id of the row
	own       string // the source of the row; carrier: that of the honest tool around the instruction
	carrier   string
	catalogue int // the number of the catalogue that contains the text; 0 for a labelled row
	about     shield.WordTopic
	order     bool
	tool      bool // the text is part of a definition
	met       bool // a rule detects an instruction in the text
	at        shield.TextPlace
	counts    float64
	score     float64 // the result of stands, with a model that was learned without the text
	sentences []*sentence
}

// A sentence contains the properties of a sentence that the model uses.
type sentence struct {
	slots  []uint32 // in the table that is learned
	order  bool
	counts float64
	// inAnswers are the sentence's slots in the table for answers, if the field slots has the slots in the table for
	// definitions.
	inAnswers []uint32
	// strange reports whether the sentence shares no topic word with its document. mention reports whether it has a
	// word about attacks.
	strange, mention bool
}

// asAnswer returns a copy of the text that has the slots in the table for answers, for learning the weights for
// answers.
func (t text) asAnswer() *text {
	all := make([]*sentence, len(t.sentences))
	for i, s := range t.sentences {
		all[i] = &sentence{slots: s.inAnswers, strange: s.strange, mention: s.mention}
	}
	t.sentences = all
	return &t
}

// A lesson contains the training data, and the sample of instructions that is not used for training.
type lesson struct {
	in            *shield.Inspector
	honest        map[string]bool // sentences of honest rows
	catalogues    int
	texts, unseen []*text
	rows          []row // the definitions among the labelled rows
}

// A row is a labelled row of a file, in the form of internal/tools/shieldscore.
type row struct {
	ID, Label, Class, Tier, Source, Server string
	Tool                                   json.RawMessage
	Text                                   string
	catalogue                              int
	own, carrier                           string
}

// read reads all training data. It reads honest texts first: if an honest text contains a sentence of a row with an
// instruction, this sentence is omitted from that row.
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
	v, err := newVariety("internal/shield/kinds.txt")
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

// sample adds an instruction of the sample to unseen, which is not used for training. line is a row of the sample.
func (l *lesson) sample(_ int, line []byte) error {
	var r struct {
		Class string
		Tool  struct{ Name, Description string }
	}
	if err := json.Unmarshal(line, &r); err != nil || r.Class != "plain" {
		return err
	}
	t := &text{at: shield.PlaceDescription, about: l.in.TopicOf(r.Tool.Name, r.Tool.Description)}
	_, s, _ := strings.Cut(r.Tool.Description, ". ")
	l.put(t, s)
	l.unseen = append(l.unseen, t)
	return nil
}

// row adds a labelled row. The following rows are not used for training: encoded instructions, instructions of tier C
// or in other languages, and rows of the classes "plain" and "order".
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

// counts returns the weight of a row in the training. It returns 3 for a row with an instruction and for an honest row
// that resembles one, and 1 for any other row.
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
	put := func(at shield.TextPlace, s string) {
		l.add(&text{about: about, catalogue: r.catalogue, of: r.ID, own: r.own, carrier: r.carrier, order: r.Label == "malicious", tool: true, at: at,
			counts: counts}, s)
	}
	put(shield.PlaceDescription, tool.Description)
	put(shield.PlaceMember, tool.Title)
	for _, part := range []any{tool.Annotations, tool.Input, tool.Output} {
		members(part, "", put)
	}
	return nil
}

// properties appends the names of a schema's properties to names.
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

// members calls put for each text in a schema, with the place of the text.
func members(v any, name string, put func(shield.TextPlace, string)) {
	switch v := v.(type) {
	case string:
		at := shield.PlaceMember
		if name == "description" {
			at = shield.PlaceSchema
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
				put(shield.PlaceMember, k)
			}
			members(v[k], k, put)
		}
	}
}

// add adds a text with the sentences of s to the training data. From a row with an instruction, only some sentences are
// used: a rule must detect an instruction in the sentence, and no honest row may contain it.
func (l *lesson) add(t *text, s string) {
	l.put(t, s)
	if len(t.sentences) > 0 {
		l.texts = append(l.texts, t)
	}
}

func (l *lesson) put(t *text, s string) {
	canonical, _ := shield.CanonicalText(s)
	t.met = t.tool && l.met(canonical)
	for _, of := range l.in.Sentences(canonical, t.about, t.at == shield.PlaceDescription) {
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

// met reports whether a rule detects an instruction to a model in a sentence.
func (l *lesson) met(s string) bool {
	return slices.ContainsFunc(l.in.Inspect(s, shield.FromDefinitions, shield.PlaceNone, nil),
		func(f shield.TextMatch) bool { return f.Act > shield.ActionNote })
}

// each calls take for each line of a file, with the line's number. For an empty file name it does nothing.
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
