package skillmerge

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Server is a server with skills.
type Server struct {
	ID drawbridge.ServerID
	// Row is the hash of the server's configuration. Listing is its last listing. If either changes, the skills may
	// have changed.
	Row     string
	Listing *drawbridge.Listing
}

// A ServerSkills is one server's answer about its skills to one principal. It must not be changed after Cache.Put.
type ServerSkills struct {
	server Server
	// asked is the time of the last request, lastErr its error. answered reports whether the server has ever answered.
	asked    time.Time
	lastErr  error
	answered bool

	hint   drawbridge.CacheHint
	skills []Skill
	// unlisted are skills that the server has but does not list.
	unlisted []Skill
	leftOut  []OmittedSkill
}

// An OmittedSkill is an entry in a server's list that callers do not see.
type OmittedSkill struct {
	// URI is the URI of the entry; empty if it has none.
	URI string
	// Reason is the reason for the omission, as a text for people.
	Reason string
}

// MaxCacheAge is the maximum age of a cached answer, even if the server allows a longer one.
const MaxCacheAge = 5 * time.Minute

// retryDelay is the pause before a server that failed is asked again.
const retryDelay = 5 * time.Second

// NewServerSkills returns an empty answer of a server. AddPage adds the skills.
func NewServerSkills() *ServerSkills {
	return &ServerSkills{answered: true, hint: drawbridge.CacheHint{TTL: MaxCacheAge, Public: true}}
}

// Len returns the number of listed skills.
func (c *ServerSkills) Len() int { return len(c.skills) }

// MarkTruncated stores that the rest of the server's list was not read.
func (c *ServerSkills) MarkTruncated() {
	c.leftOut = append(c.leftOut, OmittedSkill{"", "the server's list of skills has no end"})
}

// HasAnswered reports whether the server has ever answered.
func (c *ServerSkills) HasAnswered() bool { return c.answered }

// LastError returns the error of the last request; nil if it succeeded.
func (c *ServerSkills) LastError() error { return c.lastErr }

// IsFresh reports whether the answer can still be used: it is younger than age, or, if age is 0, than the server's
// cache hint allows. An answer for another listing is not fresh. After an error, age is at least retryDelay.
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

// Refreshed returns the state after another request: the new answer or, after an error, the previous answer with that
// error. c is nil before the first request.
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

// AddPage adds a page of the server's list.
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

// readCacheHint parses the cache hint of a result.
func readCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // if it is not a number, there is no hint
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, MaxCacheAge.Milliseconds()))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}

// remainingHint returns the cache hint with the remaining time in whole seconds, so that answers rarely differ.
func (c *ServerSkills) remainingHint(now time.Time) drawbridge.CacheHint {
	if c.lastErr != nil || !c.answered {
		return drawbridge.CacheHint{}
	}
	return drawbridge.CacheHint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}
