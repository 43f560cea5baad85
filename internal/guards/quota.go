package guards

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// A Quota limits the number of calls until its count is reset. If both Every and Idle are zero, the count is never
// reset.
type Quota struct {
	// Name is the key of the quota in a usageByQuota.
	Name string
	// Max is the maximum number of calls.
	Max int
	// Every is the time from the first counted call to the reset. Idle is the time from the last counted call to the
	// reset. Zero disables that reset.
	Every, Idle time.Duration
}

// A quotaUsage is the usage of one quota by one caller.
type quotaUsage struct {
	Used int `json:"used"`
	// First and Last are the times of the first and the last counted call.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// A usageByQuota contains the usage of quotas by one caller. The keys are the names of the quotas.
type usageByQuota map[string]quotaUsage

// A quotaExceededError reports that a quota is used up.
type quotaExceededError struct {
	Quota Quota
	// RetryAt is when the count is reset if no further call is made. It is zero if the count is never reset.
	RetryAt time.Time
}

// Error returns the name and the size of the quota.
func (e *quotaExceededError) Error() string {
	return fmt.Sprintf("quota %s: all %d calls are used", e.Quota.Name, e.Quota.Max)
}

// currentUsage returns the usage at the time now: c, or zero if the count was reset before now.
func (q Quota) currentUsage(c quotaUsage, now time.Time) quotaUsage {
	if c.Used == 0 || q.hasPassed(c.First, q.Every, now) || q.hasPassed(c.Last, q.Idle, now) {
		return quotaUsage{}
	}
	return c
}

// hasPassed reports whether span is positive and has passed since the time since. If since is later than now because
// the clock was set back, it returns false.
func (q Quota) hasPassed(since time.Time, span time.Duration, now time.Time) bool {
	return span > 0 && now.Sub(since) >= span
}

// rebase corrects usages whose last call lies in the future by at least the longer of Every and Idle, because the clock
// was set back. It sets First and Last to now and keeps the count, so that no caller waits for a date in the future.
// moved reports whether any usage was corrected.
func (p usageByQuota) rebase(quotas []Quota, now time.Time) (after usageByQuota, moved bool) {
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

// resetTime returns when the count of c is reset if no further call is made. It returns zero if the count is never
// reset.
func (q Quota) resetTime(c quotaUsage) (at time.Time) {
	if q.Every > 0 {
		at = c.First.Add(q.Every)
	}
	if idle := c.Last.Add(q.Idle); q.Idle > 0 && (at.IsZero() || idle.Before(at)) {
		at = idle
	}
	return at
}

// spend counts one call for every quota. If a quota is used up, it counts nothing and returns a *[quotaExceededError].
// p is not changed; the result contains only the usage of these quotas.
func (p usageByQuota) spend(quotas []Quota, now time.Time) (usageByQuota, error) {
	after := usageByQuota{}
	for _, q := range quotas {
		c := q.currentUsage(p[q.Name], now)
		if c.Used >= q.Max {
			return nil, &quotaExceededError{q, q.resetTime(c)}
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

// parseUsage parses a usage that encode returned; empty text is an empty usage. It returns an error for invalid text,
// such as a negative count.
func parseUsage(text []byte) (usageByQuota, error) {
	p := usageByQuota{}
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

// encode returns the usage in the form that parseUsage reads.
func (p usageByQuota) encode() ([]byte, error) { return json.Marshal(p) }
