package shield

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// SanitizedText stands in the place of a text that was blanked.
const SanitizedText = "[sanitized]"

// A CheckVerdict is what came of looking at something. The zero value is Held: what nobody looked at may not pass.
type CheckVerdict int

const (
	// VerdictHeld waits for a person. Nothing in this package gives it.
	VerdictHeld CheckVerdict = iota
	// VerdictBlanked had a text replaced by Sanitized, or a name by one that says nothing.
	VerdictBlanked
	// VerdictFlagged had something taken out of it, or met a rule that only labels.
	VerdictFlagged
	// VerdictClean has nothing that counts. It may have been cut at a cap, and may talk about attacks.
	VerdictClean
)

// String returns "held", "blanked", "flagged" or "clean".
func (v CheckVerdict) String() string { return [...]string{"held", "blanked", "flagged", "clean"}[v] }

// MarshalText returns the word for it.
func (v CheckVerdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// WeighedRule is the Rule of what no rule met: a sentence is flagged by what its words weigh, which errs now and then.
const WeighedRule = injection.WeighedRule

// A Finding is one thing that was found or done, and where.
type Finding struct {
	// Path is where the text stands, as a JSON pointer (RFC 6901); "" for a text by itself.
	Path string `json:"path"`
	// Offset is the byte of the text at which it begins; of the canonical form for what rules found, else of the text
	// as it came.
	Offset int `json:"at"`
	// Rule is the name of the rule, or of what was taken.
	Rule string `json:"rule"`
	// Action is "noted", "flagged", "stripped", "cut", "blanked" or "renamed".
	Action string `json:"did"`
	// Why says it to people.
	Why string `json:"why"`
	// Excerpt is what was there, as a Go string without its quotes, of 64 bytes at most.
	Excerpt string `json:"excerpt,omitempty"`
}

// affectsVerdict reports whether a reason makes a verdict other than Clean.
func (r Finding) affectsVerdict() bool { return r.Action != "noted" && r.Action != "cut" }

// TextCaps are the most bytes a text of a definition may have. Zero is the default: 1,024 for a description, 2,048 for
// the instructions of a server, 512 for a text in a schema. What is longer is cut between two characters and ends with
// a note of it.
type TextCaps struct{ Description, Instructions, Schema int }

// Options change how a Shield looks. The zero value cuts at the default caps.
type Options struct {
	Caps TextCaps
	// NoCaps leaves long texts as they are, up to 64 KiB: for servers of a person's own, and clients that are not ours.
	NoCaps bool
	// DefinitionWeights stand in for the built-in weights of definitions, to measure what was learned. Nil is the
	// built-in ones.
	DefinitionWeights []byte
}

// A Shield judges definitions and results. It is safe for concurrent use, and keeps nothing of what it sees.
type Shield struct {
	inspector *injection.Inspector
	caps      TextCaps
}

// New makes a Shield. An error says which option is wrong.
func New(o Options) (*Shield, error) {
	for _, c := range []*int{&o.Caps.Description, &o.Caps.Instructions, &o.Caps.Schema} {
		if *c < 0 || *c > 0 && *c < minCap {
			return nil, fmt.Errorf("cap of %d bytes: at least %d", *c, minCap)
		}
		if o.NoCaps {
			*c = injection.MaxDefinitionText
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
	in, err := injection.NewInspectorWithWeights(o.DefinitionWeights)
	if err != nil {
		return nil, err
	}
	return &Shield{in, o.Caps}, nil
}

// CheckText judges one text of a definition that stands by itself, such as the instructions of a server, and gives
// what may be shown to a model in its place.
func (s *Shield) CheckText(text string) (string, CheckVerdict, []Finding) {
	out, reasons := s.checkText(text, "", s.caps.Instructions, injection.PlaceInstructions, nil, nil)
	return out, verdictOf(reasons), reasons
}

// CheckResultText judges a text that came as the answer to a call. The text itself is for the caller to leave as it
// is; what is given back is its canonical form, for who shows it to a model of ours. No result is ever blanked.
func (s *Shield) CheckResultText(text string) (string, CheckVerdict, []Finding) {
	out, reasons := s.checkResultText(text, "", injection.PlaceAnswer)
	return out, verdictOf(reasons), reasons
}

func (s *Shield) checkResultText(text, path string, at injection.TextPlace) (string, []Finding) {
	out, traces := injection.CanonicalResultText(text)
	reasons := removalFindings(traces, path)
	var topic injection.WordTopic
	about := func() injection.WordTopic {
		if topic == nil {
			topic = s.inspector.TopicOf(out)
		}
		return topic
	}
	for _, f := range s.inspector.Inspect(out, injection.FromResults, at, about) {
		reasons = append(reasons, newFinding(f, out, path, min(f.Act, injection.ActionFlag)))
	}
	return out, reasons
}

// checkText cleans a text, looks at it, and blanks or cuts it. It is a part of whole unless that is nil.
func (s *Shield) checkText(text, path string, most int, at injection.TextPlace, about func() injection.WordTopic,
	whole *injection.SplitText) (string, []Finding) {
	out, traces := injection.CanonicalText(text)
	reasons := removalFindings(traces, path)
	worst := injection.ActionNote
	var found []injection.Finding
	if whole != nil {
		found = s.inspector.InspectPart(out, at, about, whole)
	} else {
		found = s.inspector.Inspect(out, injection.FromDefinitions, at, about)
	}
	for _, f := range found {
		reasons = append(reasons, newFinding(f, out, path, f.Act))
		worst = max(worst, f.Act)
	}
	if worst == injection.ActionBlank {
		return SanitizedText, reasons
	}
	if short := truncateWithNote(out, most); short != out {
		reasons = append(reasons, Finding{Path: path, Offset: most, Rule: "cap", Action: "cut",
			Why: fmt.Sprintf("is longer than %d bytes", most)})
		out = short
	}
	return out, reasons
}

// removalFindings makes reasons of what was taken.
func removalFindings(traces []injection.Removal, path string) (reasons []Finding) {
	for _, t := range traces {
		reasons = append(reasons, Finding{Path: path, Offset: t.At, Rule: "hidden-" + t.Kind, Action: "stripped",
			Why: removedKindText(t.Kind), Excerpt: safeExcerpt(t.Hidden)})
	}
	return reasons
}

// removedKindText says to people what a kind of trace is.
func removedKindText(kind string) string {
	switch kind {
	case "tag", "selector", "invisible":
		return "had characters that show nothing"
	case "bidi":
		return "had characters that turn the order of others"
	case "control", "escape":
		return "had control characters"
	case "private":
		return "had characters that nobody has defined"
	case "marks":
		return "had more marks on a letter than any script"
	case "space":
		return "pushed text out of sight with white space"
	}
	return "was not UTF-8"
}

func newFinding(f injection.Finding, text, path string, act injection.FindingAction) Finding {
	did := [...]string{"noted", "flagged", "blanked"}[act]
	return Finding{Path: path, Offset: f.At, Rule: f.Rule, Action: did, Why: f.Why,
		Excerpt: safeExcerpt(text[f.At:min(f.End, len(text))])}
}

// safeExcerpt returns the beginning of what was found, with nothing in it that acts on a terminal.
func safeExcerpt(text string) string {
	const most = 64
	// Every letter that is not ASCII is a code point here, which safetext does not do: letters that look alike are
	// what was found.
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
