package skillmerge

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Server identifies an MCP server and the state in which its skills were requested.
type Server struct {
	ID drawbridge.ServerID
	// Row is the hash of the server's configuration. Listing is the server's last listing of tools and resources. If
	// either changes, the skills may have changed.
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

// retryDelay is the minimum time between a failed request for the skills and the next request.
const retryDelay = 5 * time.Second

// NewServerSkills returns the answer of a server without any skills. AddPage adds the skills of a page of the server's
// list.
func NewServerSkills() *ServerSkills {
	return &ServerSkills{answered: true, hint: drawbridge.CacheHint{TTL: MaxCacheAge, Public: true}}
}

// Len returns the number of listed skills.
func (c *ServerSkills) Len() int { return len(c.skills) }

// MarkTruncated adds an OmittedSkill that says that the server's list was not read to its end.
func (c *ServerSkills) MarkTruncated() {
	c.leftOut = append(c.leftOut, OmittedSkill{"", "the server's list of skills has no end"})
}

// HasAnswered reports whether the server has ever answered.
func (c *ServerSkills) HasAnswered() bool { return c.answered }

// LastError returns the error of the last request; nil if it succeeded.
func (c *ServerSkills) LastError() error { return c.lastErr }

// IsFresh reports whether the answer can still be used. It must be younger than age, or, if age is 0, than the server's
// cache hint allows. An answer from before a change of s.Listing is not fresh. After a failed request, the server is
// not asked again for at least retryDelay.
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

// Refreshed returns the state after another request for the skills. After a success, that is answer. If refusal, the
// error of the request, is set, it is the previous answer c with that error. c is nil before the first request.
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

// remainingHint returns the server's cache hint, reduced by the age of the answer. The time is in whole seconds, so
// that successive results rarely differ.
func (c *ServerSkills) remainingHint(now time.Time) drawbridge.CacheHint {
	if c.lastErr != nil || !c.answered {
		return drawbridge.CacheHint{}
	}
	return drawbridge.CacheHint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}
