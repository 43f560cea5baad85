package ratelimit

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// A Quota is the number of calls until the count is reset. With neither Every nor Idle it is never reset.
type Quota struct {
	// Name identifies the quota within a UsageByQuota.
	Name string
	// Max is the number of calls.
	Max int
	// Every is the time from the first counted call to the reset, Idle the time from the last one. Zero disables that
	// reset.
	Every, Idle time.Duration
}

// A QuotaUsage is the used part of a quota.
type QuotaUsage struct {
	Used int `json:"used"`
	// First and Last are the times of the first and the last counted call.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// A UsageByQuota holds the usage of one caller, by the names of quotas.
type UsageByQuota map[string]QuotaUsage

// A QuotaExceededError reports that a quota is used up.
type QuotaExceededError struct {
	Quota Quota
	// RetryAt is when the count is reset if no call is made before; zero if it is never reset.
	RetryAt time.Time
}

// Error returns the name and the size of the quota.
func (e *QuotaExceededError) Error() string {
	return fmt.Sprintf("quota %s: all %d calls are used", e.Quota.Name, e.Quota.Max)
}

// CurrentUsage returns the usage at a time: zero if the count was reset since.
func (q Quota) CurrentUsage(c QuotaUsage, now time.Time) QuotaUsage {
	if c.Used == 0 || q.hasPassed(c.First, q.Every, now) || q.hasPassed(c.Last, q.Idle, now) {
		return QuotaUsage{}
	}
	return c
}

// hasPassed reports whether a span is over. A span that starts later than now is not over: the clock was put back.
func (q Quota) hasPassed(since time.Time, span time.Duration, now time.Time) bool {
	return span > 0 && now.Sub(since) >= span
}

// Rebase corrects counts whose start lies more than a span in the future, because the clock was set back since. They
// are treated as if they had begun now: the usage stays, and no caller waits for the future date. It reports whether
// there were any.
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

// resetTime returns when a count is reset.
func (q Quota) resetTime(c QuotaUsage) (at time.Time) {
	if q.Every > 0 {
		at = c.First.Add(q.Every)
	}
	if idle := c.Last.Add(q.Idle); q.Idle > 0 && (at.IsZero() || idle.Before(at)) {
		at = idle
	}
	return at
}

// Spend takes one call out of every quota, or out of none: then the error is a *[QuotaExceededError]. p is not changed;
// the result holds the usage of these quotas only.
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
		if now.After(c.Last) { // a clock that was set back does not change Last
			c.Last = now
		}
		c.Used++
		after[q.Name] = c
	}
	return after, nil
}

// ParseUsage reads a usage that Encode wrote; empty text is an empty usage. The error is for invalid text, such as a
// negative count.
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

// Encode returns the usage in the form that ParseUsage reads.
func (p UsageByQuota) Encode() ([]byte, error) { return json.Marshal(p) }
