package skill

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Server is one that has skills.
type Server struct {
	ID drawbridge.ServerID
	// Row is the hash of its configuration, Listing its last one: another means that it may have other skills.
	Row     string
	Listing *drawbridge.Listing
}

// A Catalogue is what one server said to one principal about its skills. It is not changed any more once it is kept.
type Catalogue struct {
	server Server
	// asked is when the server was asked last, refusal why it did not answer then; said that it ever did.
	asked   time.Time
	refusal error
	said    bool

	hint   drawbridge.Hint
	skills []Entry
	// found are skills that the server has and does not list.
	found   []Entry
	leftOut []LeftOut
}

// LeftOut is something that a server lists and that is not listed outward.
type LeftOut struct {
	// URI is its own; empty where it has none.
	URI string
	// Reason says why, for people.
	Reason string
}

// MaxAge is how long what a server said is kept, however long it allows.
const MaxAge = 5 * time.Minute

// awayAge is how long a server that did not answer is not asked again.
const awayAge = 5 * time.Second

// Answer is an empty catalogue of a server that answers; pages are added to it.
func Answer() *Catalogue {
	return &Catalogue{said: true, hint: drawbridge.Hint{TTL: MaxAge, Public: true}}
}

// Len counts the skills that are listed.
func (c *Catalogue) Len() int { return len(c.skills) }

// Cut notes that the server lists more than anybody reads.
func (c *Catalogue) Cut() {
	c.leftOut = append(c.leftOut, LeftOut{"", "the server's list of skills has no end"})
}

// Said says whether the server ever answered; Refusal why it did not when it was asked last, nil where it did.
func (c *Catalogue) Said() bool     { return c.said }
func (c *Catalogue) Refusal() error { return c.refusal }

// Fresh says whether the server need not be asked again: for age, or for as long as it allowed where age is 0.
func (c *Catalogue) Fresh(s Server, now time.Time, age time.Duration) bool {
	switch {
	case c.server.Listing != s.Listing:
		return false
	case c.refusal != nil:
		age = max(age, awayAge)
	case age == 0:
		age = c.hint.TTL
	}
	return now.Sub(c.asked) < age
}

// Renewed is what is known after the server was asked again: what it says, or, where it does not answer, what it said
// before. c is nil where it was never asked.
func (c *Catalogue) Renewed(answer *Catalogue, refusal error, s Server, now time.Time) *Catalogue {
	var out Catalogue
	switch {
	case refusal == nil:
		out = *answer
		if c != nil && c.server.Listing == s.Listing {
			out.found = c.found
		}
	case c != nil:
		out = *c
	}
	out.server, out.asked, out.refusal = s, now, refusal
	return &out
}

// Add takes a page of a list.
func (c *Catalogue) Add(page json.RawMessage) {
	hint := hintIn(page)
	c.hint = drawbridge.Hint{TTL: min(c.hint.TTL, hint.TTL), Public: c.hint.Public && hint.Public}
	known := make(map[string]bool, len(c.skills))
	for _, s := range c.skills {
		known[s.URI] = true
	}
	for raw := range wire.Elements(wire.Get(page, "skills")) {
		s, reason := Read(raw)
		if reason == "" && known[s.URI] {
			reason = "the server lists its uri twice"
		}
		if reason != "" {
			c.leftOut = append(c.leftOut, LeftOut{s.URI, reason})
			continue
		}
		known[s.URI] = true
		s.raw = bytes.Clone(s.raw)
		c.skills = append(c.skills, s)
	}
}

// hintIn reads the caching hints of a result.
func hintIn(result json.RawMessage) drawbridge.Hint {
	var ms int64
	_ = json.Unmarshal(wire.Get(result, "ttlMs"), &ms) // no number: no hint
	return drawbridge.Hint{
		TTL:    time.Duration(max(0, min(ms, MaxAge.Milliseconds()))) * time.Millisecond,
		Public: wire.GetText(result, "cacheScope") == "public",
	}
}

// hintAt is what is left of the hint, in whole seconds, so that not every answer is another one.
func (c *Catalogue) hintAt(now time.Time) drawbridge.Hint {
	if c.refusal != nil || !c.said {
		return drawbridge.Hint{}
	}
	return drawbridge.Hint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}
