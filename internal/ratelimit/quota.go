package ratelimit

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// A Quota is how many calls there are before the count has to begin again. One of neither Every nor Idle never does.
type Quota struct {
	// Name tells the quotas of one purse apart.
	Name string
	// Max is how many calls there are.
	Max int
	// Every is how long after the first call that counted the count begins again; Idle is how long after the last one.
	// Zero means that it does not for that reason.
	Every, Idle time.Duration
}

// A QuotaUsage is what has been spent of a quota.
type QuotaUsage struct {
	Used int `json:"used"`
	// First and Last are when the calls were that counted first and last.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// A UsageByQuota is the counts of one caller, by the names of quotas.
type UsageByQuota map[string]QuotaUsage

// A QuotaExceededError reports that there is nothing left of a quota.
type QuotaExceededError struct {
	Quota Quota
	// RetryAt is when the count begins again, if nothing is called before; zero for one that never does.
	RetryAt time.Time
}

// Error says how many calls there were.
func (e *QuotaExceededError) Error() string {
	return fmt.Sprintf("quota %s: all %d calls are used", e.Quota.Name, e.Quota.Max)
}

// CurrentUsage is the count as it stands at a time: an empty one where it has begun again since.
func (q Quota) CurrentUsage(c QuotaUsage, now time.Time) QuotaUsage {
	if c.Used == 0 || q.hasPassed(c.First, q.Every, now) || q.hasPassed(c.Last, q.Idle, now) {
		return QuotaUsage{}
	}
	return c
}

// hasPassed reports whether a span is over. One that begins later than now is not: the clock was put back.
func (q Quota) hasPassed(since time.Time, span time.Duration, now time.Time) bool {
	return span > 0 && now.Sub(since) >= span
}

// Rebase returns the counts with those that began a whole span after now, by a clock that was put back since, as if
// they had begun now: what was used stays used, and no caller waits for that date. It reports whether there were any.
func (p UsageByQuota) Rebase(quotas []Quota, now time.Time) (after UsageByQuota, moved bool) {
	after = maps.Clone(p)
	for _, q := range quotas {
		c, span := p[q.Name], max(q.Every, q.Idle)
		if c.Used == 0 || span == 0 || c.Last.Sub(now) < span {
			continue
		}
		c.First, c.Last, moved = now, now, true
		after[q.Name] = c
	}
	return after, moved
}

// resetTime is when a count begins again.
func (q Quota) resetTime(c QuotaUsage) (at time.Time) {
	if q.Every > 0 {
		at = c.First.Add(q.Every)
	}
	if idle := c.Last.Add(q.Idle); q.Idle > 0 && (at.IsZero() || idle.Before(at)) {
		at = idle
	}
	return at
}

// Spend takes one call out of every quota, or out of none: then the error is a *[QuotaExceededError]. The purse is not
// changed; what it gives has the counts of these quotas alone.
func (p UsageByQuota) Spend(quotas []Quota, now time.Time) (UsageByQuota, error) {
	after := UsageByQuota{}
	for _, q := range quotas {
		c := q.CurrentUsage(p[q.Name], now)
		if c.Used >= q.Max {
			return nil, &QuotaExceededError{q, q.resetTime(c)}
		}
		if c.Used == 0 {
			c.First = now
		}
		if now.After(c.Last) { // a clock that was put back makes no count older
			c.Last = now
		}
		c.Used++
		after[q.Name] = c
	}
	return after, nil
}

// ParseUsage reads a purse as Text wrote it; nothing is an empty one. The error is for anything else, a count below 0
// too.
func ParseUsage(text []byte) (UsageByQuota, error) {
	p := UsageByQuota{}
	if len(text) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("read the counts of calls: %w", err)
	}
	for name, c := range p {
		if c.Used < 0 {
			return nil, fmt.Errorf("read the counts of calls: quota %s has used %d", name, c.Used)
		}
	}
	return p, nil
}

// Encode writes the purse for ParseUsage.
func (p UsageByQuota) Encode() ([]byte, error) { return json.Marshal(p) }
