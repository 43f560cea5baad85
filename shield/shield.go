package shield

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield/words"
)

// Sanitized stands in the place of a text that was blanked.
const Sanitized = "[sanitized]"

// A Verdict is what came of looking at something. The zero value is Held: what nobody looked at may not pass.
type Verdict int

const (
	// Held waits for a person. Nothing in this package gives it.
	Held Verdict = iota
	// Blanked had a text replaced by Sanitized, or a name by one that says nothing.
	Blanked
	// Flagged had something taken out of it, or met a rule that only labels.
	Flagged
	// Clean has nothing that counts. It may have been cut at a cap, and may talk about attacks.
	Clean
)

// String gives "held", "blanked", "flagged" or "clean".
func (v Verdict) String() string { return [...]string{"held", "blanked", "flagged", "clean"}[v] }

// MarshalText gives the word for it.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Weighed is the Rule of what no rule met: a sentence is flagged by what its words weigh, which errs now and then.
const Weighed = words.Weighed

// A Reason is one thing that was found or done, and where.
type Reason struct {
	// Path is where the text stands, as a JSON pointer (RFC 6901); "" for a text by itself.
	Path string `json:"path"`
	// At is the byte of the text at which it begins; of the canonical form for what rules found, else of the text as
	// it came.
	At int `json:"at"`
	// Rule is the name of the rule, or of what was taken.
	Rule string `json:"rule"`
	// Did is "noted", "flagged", "stripped", "cut", "blanked" or "renamed".
	Did string `json:"did"`
	// Why says it to people.
	Why string `json:"why"`
	// Excerpt is what was there, as a Go string without its quotes, of 64 bytes at most.
	Excerpt string `json:"excerpt,omitempty"`
}

// counts says whether a reason makes a verdict other than Clean.
func (r Reason) counts() bool { return r.Did != "noted" && r.Did != "cut" }

// Caps are the most bytes a text of a definition may have. Zero is the default: 1,024 for a description, 2,048 for the
// instructions of a server, 512 for a text in a schema. What is longer is cut between two characters and ends with a note of it.
type Caps struct{ Description, Instructions, Schema int }

// Options change how a Shield looks. The zero value cuts at the default caps.
type Options struct {
	Caps Caps
	// Uncapped leaves long texts as they are, up to 64 KiB: for servers of a person's own, and clients that are not ours.
	Uncapped bool
}

// A Shield judges definitions and results. It is safe for concurrent use, and keeps nothing of what it sees.
type Shield struct {
	in   *words.Inspector
	caps Caps
}

// New makes a Shield. An error says which option is wrong.
func New(o Options) (*Shield, error) {
	for _, c := range []*int{&o.Caps.Description, &o.Caps.Instructions, &o.Caps.Schema} {
		if *c < 0 || *c > 0 && *c < fewestCap {
			return nil, fmt.Errorf("cap of %d bytes: at least %d", *c, fewestCap)
		}
		if o.Uncapped {
			*c = words.MostText
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
	in, err := words.NewInspector()
	if err != nil {
		return nil, err
	}
	return &Shield{in, o.Caps}, nil
}

// Text judges one text of a definition that stands by itself, such as the instructions of a server, and gives what may be
// shown to a model in its place.
func (s *Shield) Text(text string) (string, Verdict, []Reason) {
	out, reasons := s.text(text, "", s.caps.Instructions, words.Instructions, nil)
	return out, verdict(reasons), reasons
}

// ResultText judges a text that came as the answer to a call. The text itself is for the caller to leave as it is; what is
// given back is its canonical form, for who shows it to a model of ours. No result is ever blanked.
func (s *Shield) ResultText(text string) (string, Verdict, []Reason) {
	out, reasons := s.result(text, "", words.Answer)
	return out, verdict(reasons), reasons
}

func (s *Shield) result(text, path string, at words.Place) (string, []Reason) {
	out, traces := words.CanonicalResult(text)
	reasons := traced(traces, path)
	var topic words.Topic
	about := func() words.Topic {
		if topic == nil {
			topic = s.in.Topic(out)
		}
		return topic
	}
	for _, f := range s.in.Look(out, words.Results, at, about) {
		reasons = append(reasons, reason(f, out, path, min(f.Act, words.Flag)))
	}
	return out, reasons
}

// text cleans a text, looks at it, and blanks or cuts it.
func (s *Shield) text(text, path string, most int, at words.Place, about func() words.Topic) (string, []Reason) {
	out, traces := words.Canonical(text)
	reasons := traced(traces, path)
	worst := words.Note
	for _, f := range s.in.Look(out, words.Definitions, at, about) {
		reasons = append(reasons, reason(f, out, path, f.Act))
		worst = max(worst, f.Act)
	}
	if worst == words.Blank {
		return Sanitized, reasons
	}
	if short := shorten(out, most); short != out {
		reasons = append(reasons, Reason{Path: path, At: most, Rule: "cap", Did: "cut", Why: fmt.Sprintf("is longer than %d bytes", most)})
		out = short
	}
	return out, reasons
}

// traced makes reasons of what was taken.
func traced(traces []words.Trace, path string) (reasons []Reason) {
	for _, t := range traces {
		reasons = append(reasons, Reason{Path: path, At: t.At, Rule: "hidden-" + t.Kind, Did: "stripped", Why: kinds(t.Kind), Excerpt: excerpt(t.Hidden)})
	}
	return reasons
}

// kinds says to people what a kind of trace is.
func kinds(kind string) string {
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

func reason(f words.Finding, text, path string, act words.Action) Reason {
	did := [...]string{"noted", "flagged", "blanked"}[act]
	return Reason{Path: path, At: f.At, Rule: f.Rule, Did: did, Why: f.Why, Excerpt: excerpt(text[f.At:min(f.End, len(text))])}
}

// excerpt returns the beginning of what was found, with nothing in it that acts on a terminal.
func excerpt(text string) string {
	const most = 64
	// Every letter that is not ASCII is a code point here, which safetext does not do: letters that look alike are what was found.
	q := fmt.Sprintf("%+q", safetext.Truncate(text, most, safetext.Bytes, ""))
	if q = q[1 : len(q)-1]; len(q) > most {
		q = q[:most]
		if i := strings.LastIndexByte(q, '\\'); i > most-10 {
			q = q[:i]
		}
	}
	return q
}

func verdict(reasons []Reason) Verdict {
	v := Clean
	for _, r := range reasons {
		switch {
		case r.Did == "blanked" || r.Did == "renamed":
			return Blanked
		case r.counts():
			v = Flagged
		}
	}
	return v
}
