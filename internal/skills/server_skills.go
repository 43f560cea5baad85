package skills

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Server is one that has skills.
type Server struct {
	ID drawbridge.ServerID
	// Row is the hash of its configuration, Listing its last one: another means that it may have other skills.
	Row     string
	Listing *drawbridge.Listing
}

// A ServerSkills is what one server said to one principal about its skills. It is not changed any more once it is kept.
type ServerSkills struct {
	server Server
	// asked is when the server was asked last, refusal why it did not answer then; said that it ever did.
	asked    time.Time
	lastErr  error
	answered bool

	hint   drawbridge.CacheHint
	skills []Skill
	// unlisted are skills that the server has and does not list.
	unlisted []Skill
	leftOut  []OmittedSkill
}

// OmittedSkill is something that a server lists and that is not listed outward.
type OmittedSkill struct {
	// URI is its own; empty where it has none.
	URI string
	// Reason says why, for people.
	Reason string
}

// MaxCacheAge is how long what a server said is kept, however long it allows.
const MaxCacheAge = 5 * time.Minute

// retryDelay is how long a server that did not answer is not asked again.
const retryDelay = 5 * time.Second

// NewServerSkills is an empty catalogue of a server that answers; pages are added to it.
func NewServerSkills() *ServerSkills {
	return &ServerSkills{answered: true, hint: drawbridge.CacheHint{TTL: MaxCacheAge, Public: true}}
}

// Len counts the skills that are listed.
func (c *ServerSkills) Len() int { return len(c.skills) }

// MarkTruncated notes that the server lists more than anybody reads.
func (c *ServerSkills) MarkTruncated() {
	c.leftOut = append(c.leftOut, OmittedSkill{"", "the server's list of skills has no end"})
}

// HasAnswered says whether the server ever answered; Refusal why it did not when it was asked last, nil where it did.
func (c *ServerSkills) HasAnswered() bool { return c.answered }
func (c *ServerSkills) LastError() error  { return c.lastErr }

// IsFresh says whether the server need not be asked again: for age, or for as long as it allowed where age is 0.
func (c *ServerSkills) IsFresh(s Server, now time.Time, age time.Duration) bool {
	switch {
	case c.server.Listing != s.Listing:
		return false
	case c.lastErr != nil:
		age = max(age, retryDelay)
	case age == 0:
		age = c.hint.TTL
	}
	return now.Sub(c.asked) < age
}

// Refreshed is what is known after the server was asked again: what it says, or, where it does not answer, what it said
// before. c is nil where it was never asked.
func (c *ServerSkills) Refreshed(answer *ServerSkills, refusal error, s Server, now time.Time) *ServerSkills {
	var out ServerSkills
	switch {
	case refusal == nil:
		out = *answer
		if c != nil && c.server.Listing == s.Listing {
			out.unlisted = c.unlisted
		}
	case c != nil:
		out = *c
	}
	out.server, out.asked, out.lastErr = s, now, refusal
	return &out
}

// AddPage takes a page of a list.
func (c *ServerSkills) AddPage(page json.RawMessage) {
	hint := readCacheHint(page)
	c.hint = drawbridge.CacheHint{TTL: min(c.hint.TTL, hint.TTL), Public: c.hint.Public && hint.Public}
	known := make(map[string]bool, len(c.skills))
	for _, s := range c.skills {
		known[s.URI] = true
	}
	for raw := range rawjson.Elements(rawjson.Get(page, "skills")) {
		s, reason := ParseSkill(raw)
		if reason == "" && known[s.URI] {
			reason = "the server lists its uri twice"
		}
		if reason != "" {
			c.leftOut = append(c.leftOut, OmittedSkill{s.URI, reason})
			continue
		}
		known[s.URI] = true
		s.raw = bytes.Clone(s.raw)
		c.skills = append(c.skills, s)
	}
}

// readCacheHint reads the caching hints of a result.
func readCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // no number: no hint
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, MaxCacheAge.Milliseconds()))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}

// remainingHint is what is left of the hint, in whole seconds, so that not every answer is another one.
func (c *ServerSkills) remainingHint(now time.Time) drawbridge.CacheHint {
	if c.lastErr != nil || !c.answered {
		return drawbridge.CacheHint{}
	}
	return drawbridge.CacheHint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}
