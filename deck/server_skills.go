package deck

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A skillServer identifies an MCP server and the state in which its skills were requested.
type skillServer struct {
	id drawbridge.ServerID
	// row is the hash of the server's configuration. listing is the server's last listing of tools and resources. If
	// either changes, the skills may have changed.
	row     string
	listing *drawbridge.Listing
}

// A serverSkills is one server's answer about its skills to one principal. It must not be changed after skillCache.put.
type serverSkills struct {
	server skillServer
	// asked is the time of the last request. lastErr is its error; nil if it succeeded. answered reports whether the
	// server has ever answered.
	asked    time.Time
	lastErr  error
	answered bool

	hint   drawbridge.CacheHint
	skills []skillEntry
	// unlisted are skills that the server has but does not list.
	unlisted []skillEntry
	leftOut  []omittedSkill
}

// An omittedSkill is an entry in a server's list that callers do not see.
type omittedSkill struct {
	// uri is the URI of the entry; empty if it has none.
	uri string
	// reason is the reason for the omission, as a text for people.
	reason string
}

// maxSkillAge is the maximum age of a cached answer, even if the server allows a longer one.
const maxSkillAge = 5 * time.Minute

// skillRetryDelay is the minimum time between a failed request for the skills and the next request.
const skillRetryDelay = 5 * time.Second

// newServerSkills returns the answer of a server without any skills. addPage adds the skills of a page of the server's
// list.
func newServerSkills() *serverSkills {
	return &serverSkills{answered: true, hint: drawbridge.CacheHint{TTL: maxSkillAge, Public: true}}
}

// markTruncated adds an omittedSkill that says that the server's list was not read to its end.
func (c *serverSkills) markTruncated() {
	c.leftOut = append(c.leftOut, omittedSkill{"", "the server's list of skills has no end"})
}

// isFresh reports whether the answer can still be used. It must be younger than age, or, if age is 0, than the server's
// cache hint allows. An answer from before a change of s.listing is not fresh. After a failed request, the server is
// not asked again for at least skillRetryDelay.
func (c *serverSkills) isFresh(s skillServer, now time.Time, age time.Duration) bool {
	switch {
	case c.server.listing != s.listing:
		return false
	case c.lastErr != nil:
		age = max(age, skillRetryDelay)
	case age == 0:
		age = c.hint.TTL
	}
	return now.Sub(c.asked) < age
}

// refreshed returns the state after another request for the skills. After a success, that is answer. If refusal, the
// error of the request, is set, it is the previous answer c with that error. c is nil before the first request.
func (c *serverSkills) refreshed(answer *serverSkills, refusal error, s skillServer, now time.Time) *serverSkills {
	var out serverSkills
	switch {
	case refusal == nil:
		out = *answer
		if c != nil && c.server.listing == s.listing {
			out.unlisted = c.unlisted
		}
	case c != nil:
		out = *c
	}
	out.server, out.asked, out.lastErr = s, now, refusal
	return &out
}

// addPage adds a page of the server's list.
func (c *serverSkills) addPage(page json.RawMessage) {
	hint := readCacheHint(page)
	c.hint = drawbridge.CacheHint{TTL: min(c.hint.TTL, hint.TTL), Public: c.hint.Public && hint.Public}
	known := make(map[string]bool, len(c.skills))
	for _, s := range c.skills {
		known[s.uri] = true
	}
	for raw := range rawjson.Elements(rawjson.Get(page, "skills")) {
		s, reason := parseSkill(raw)
		if reason == "" && known[s.uri] {
			reason = "the server lists its uri twice"
		}
		if reason != "" {
			c.leftOut = append(c.leftOut, omittedSkill{s.uri, reason})
			continue
		}
		known[s.uri] = true
		s.raw = bytes.Clone(s.raw)
		c.skills = append(c.skills, s)
	}
}

// readCacheHint parses the cache hint of a result.
func readCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // if it is not a number, there is no hint
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, maxSkillAge.Milliseconds()))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}

// remainingHint returns the server's cache hint, reduced by the age of the answer. The time is in whole seconds, so
// that successive results rarely differ.
func (c *serverSkills) remainingHint(now time.Time) drawbridge.CacheHint {
	if c.lastErr != nil || !c.answered {
		return drawbridge.CacheHint{}
	}
	return drawbridge.CacheHint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}
