package shield

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// SanitizedText replaces a text that was blanked.
const SanitizedText = "[sanitized]"

// A CheckVerdict is the overall result of a check. The zero value is VerdictHeld, so that a text that was not checked
// is not shown.
type CheckVerdict int

const (
	// VerdictHeld means that a person must decide. This package never returns it.
	VerdictHeld CheckVerdict = iota
	// VerdictBlanked means that a text was replaced by SanitizedText, or a name by a neutral one.
	VerdictBlanked
	// VerdictFlagged means that characters were removed, or that a rule matched that does not change the text.
	VerdictFlagged
	// VerdictClean means that there are no findings, or only findings with the action "noted" or "cut".
	VerdictClean
)

// String returns "held", "blanked", "flagged" or "clean".
func (v CheckVerdict) String() string { return [...]string{"held", "blanked", "flagged", "clean"}[v] }

// MarshalText returns the same word as String.
func (v CheckVerdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Finding is a match of a rule or a change to the text, with its position.
type Finding struct {
	// Path is the JSON pointer (RFC 6901) to the text; "" for a text that is not part of JSON.
	Path string `json:"path"`
	// Offset is the byte offset of the finding in the text. For matches of rules it refers to the canonical form,
	// otherwise to the original text.
	Offset int `json:"at"`
	// Rule is the name of the rule, or the kind of the removed characters.
	Rule string `json:"rule"`
	// Action is "noted", "flagged", "stripped", "cut", "blanked" or "renamed". "noted" and "flagged" do not change the
	// text.
	Action string `json:"did"`
	// Why describes the finding for people.
	Why string `json:"why"`
	// Excerpt is the beginning of the matched text, at most 64 bytes, with the escapes of a Go string but without
	// quotes.
	Excerpt string `json:"excerpt,omitempty"`
}

// affectsVerdict reports whether a check with this finding cannot have the verdict VerdictClean.
func (r Finding) affectsVerdict() bool { return r.Action != "noted" && r.Action != "cut" }

// TextCaps are the maximum sizes of a definition's texts in bytes. Zero means the default: 1,024 for a description,
// 2,048 for the instructions of a server, and 512 for a text in a schema. A longer text is cut between two characters
// and ends with a note.
type TextCaps struct{ Description, Instructions, Schema int }

// Options configure a Shield. The zero value cuts texts at the default caps.
type Options struct {
	Caps TextCaps
	// NoCaps disables the caps. Texts of more than 64 KiB are cut nevertheless.
	NoCaps bool
	// DefinitionWeights replaces the built-in weights for definitions. Use it to measure newly learned weights. Nil
	// selects the built-in weights.
	DefinitionWeights []byte
}

// A Shield checks definitions and results. It is safe for concurrent use, and stores nothing about its input.
type Shield struct {
	inspector *Inspector
	caps      TextCaps
}

// New returns a Shield. It returns an error if a cap is smaller than minCap, or if the weights are invalid.
func New(o Options) (*Shield, error) {
	for _, c := range []*int{&o.Caps.Description, &o.Caps.Instructions, &o.Caps.Schema} {
		if *c < 0 || *c > 0 && *c < minCap {
			return nil, fmt.Errorf("cap of %d bytes: at least %d", *c, minCap)
		}
		if o.NoCaps {
			*c = maxDefinitionText
		}
	}
	if o.Caps.Description == 0 {
		o.Caps.Description = 1024
	}
	if o.Caps.Instructions == 0 {
		o.Caps.Instructions = 2048
	}
	if o.Caps.Schema == 0 {
		o.Caps.Schema = 512
	}
	in, err := newInspectorWithWeights(o.DefinitionWeights)
	if err != nil {
		return nil, err
	}
	return &Shield{in, o.Caps}, nil
}

// CheckText checks a text of a definition that is not part of JSON, such as the instructions of a server. It returns
// the text that may be shown to a model, cut at the cap for instructions.
func (s *Shield) CheckText(text string) (string, CheckVerdict, []Finding) {
	out, reasons := s.checkText(text, "", s.caps.Instructions, PlaceInstructions, nil, nil)
	return out, verdictOf(reasons), reasons
}

// CheckResultText checks a text in the result of a call. It returns the canonical form of the text, which may be shown
// to a model. A text of a result is never blanked.
func (s *Shield) CheckResultText(text string) (string, CheckVerdict, []Finding) {
	out, reasons := s.checkResultText(text, "", PlaceAnswer)
	return out, verdictOf(reasons), reasons
}

func (s *Shield) checkResultText(text, path string, at TextPlace) (string, []Finding) {
	out, traces := CanonicalResultText(text)
	reasons := removalFindings(traces, path)
	var topic WordTopic
	about := func() WordTopic {
		if topic == nil {
			topic = s.inspector.TopicOf(out)
		}
		return topic
	}
	for _, f := range s.inspector.Inspect(out, FromResults, at, about) {
		reasons = append(reasons, newFinding(f, out, path, min(f.Act, ActionFlag)))
	}
	return out, reasons
}

// checkText returns the canonical form of a text, blanked or cut if necessary, and the findings. If whole is not nil
// and no rule flags or blanks the text, the text is added to whole.
func (s *Shield) checkText(text, path string, most int, at TextPlace, about func() WordTopic,
	whole *splitText) (string, []Finding) {
	out, traces := CanonicalText(text)
	reasons := removalFindings(traces, path)
	worst := ActionNote
	var found []TextMatch
	if whole != nil {
		found = s.inspector.inspectPart(out, at, about, whole)
	} else {
		found = s.inspector.Inspect(out, FromDefinitions, at, about)
	}
	for _, f := range found {
		reasons = append(reasons, newFinding(f, out, path, f.Act))
		worst = max(worst, f.Act)
	}
	if worst == ActionBlank {
		return SanitizedText, reasons
	}
	if short := truncateWithNote(out, most); short != out {
		reasons = append(reasons, Finding{Path: path, Offset: most, Rule: "cap", Action: "cut",
			Why: fmt.Sprintf("is longer than %d bytes", most)})
		out = short
	}
	return out, reasons
}

// removalFindings returns a finding for each removal of characters.
func removalFindings(traces []Removal, path string) (reasons []Finding) {
	for _, t := range traces {
		reasons = append(reasons, Finding{Path: path, Offset: t.At, Rule: "hidden-" + t.Kind, Action: "stripped",
			Why: removedKindText(t.Kind), Excerpt: safeExcerpt(t.Hidden)})
	}
	return reasons
}

// removedKindText returns the description of a kind of removed characters, for people.
func removedKindText(kind string) string {
	switch kind {
	case "tag", "selector", "invisible":
		return "had invisible characters"
	case "bidi":
		return "had characters that change the direction of text"
	case "control", "escape":
		return "had control characters"
	case "private":
		return "had characters that Unicode does not define"
	case "marks":
		return "had more marks on a letter than any script"
	case "space":
		return "pushed text out of sight with white space"
	}
	return "was not UTF-8"
}

func newFinding(f TextMatch, text, path string, act FindingAction) Finding {
	did := [...]string{"noted", "flagged", "blanked"}[act]
	return Finding{Path: path, Offset: f.At, Rule: f.Rule, Action: did, Why: f.Why,
		Excerpt: safeExcerpt(text[f.At:min(f.End, len(text))])}
}

// safeExcerpt returns the beginning of a match in printable ASCII, at most 64 bytes.
func safeExcerpt(text string) string {
	const most = 64
	// Letters outside ASCII are written as code points, because they may imitate other letters. Package safetext leaves
	// them unchanged.
	q := fmt.Sprintf("%+q", safetext.Truncate(text, most, safetext.Bytes, ""))
	if q = q[1 : len(q)-1]; len(q) > most {
		q = q[:most]
		if i := strings.LastIndexByte(q, '\\'); i > most-10 {
			q = q[:i]
		}
	}
	return q
}

func verdictOf(reasons []Finding) CheckVerdict {
	v := VerdictClean
	for _, r := range reasons {
		switch {
		case r.Action == "blanked" || r.Action == "renamed":
			return VerdictBlanked
		case r.affectsVerdict():
			v = VerdictFlagged
		}
	}
	return v
}
