package config

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// ToolLimits limits calls of tools. A zero field means the default.
type ToolLimits struct {
	// PerSession is the maximum number of calls of a caller in a session; 0 means no limit. A session ends after 30
	// minutes without a call; a new connection does not start a new session.
	PerSession int
	// PerCaller is the maximum number of calls of a caller in a period; 0 means no limit. A period has the length
	// Window and starts with the first call.
	PerCaller int
	Window    time.Duration
	// SameErrors is how often equal calls may end in the same error within 60 seconds. SameCalls is how often equal
	// calls may end with the same result within 60 seconds. A negative value means no limit.
	SameErrors, SameCalls int
}

// ShieldSettings configures the shield, which computes a trust score for each server. A zero field means the default.
type ShieldSettings struct {
	// Enabled controls whether the behaviour of servers is recorded for the trust score; nil means the default.
	Enabled *bool
	// Threshold is the trust score, from 0 to 1, below which a server is quarantined: its tools are hidden. With a
	// negative value, no server is quarantined.
	Threshold float64
	// HalfLife is the time after which half of the lost trust has returned.
	HalfLife time.Duration
	// HoldFlagged controls whether results that match a rule of the shield are held back; nil means false.
	HoldFlagged *bool
	// ScanResults is ScanAfter or ScanOff; empty means ScanAfter.
	ScanResults string
}

// The values of ShieldSettings.ScanResults.
const (
	// ScanAfter means that results of servers that are not trusted are examined after the client has received the
	// results.
	ScanAfter = "after"
	// ScanOff means that only two kinds of results are examined: results that are marked as foreign text, and results
	// that HoldFlagged may hold back.
	ScanOff = "off"
)

// readCallRate reads a number of calls and a period: "1000/day", "50/10m".
func readCallRate(calls *int, every *time.Duration, v configfile.Node) error {
	text, _ := v.TextValue()
	number, span, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	d, bad := time.ParseDuration(strings.TrimSpace(span))
	switch strings.TrimSpace(span) {
	case "minute":
		d, bad = time.Minute, nil
	case "hour":
		d, bad = time.Hour, nil
	case "day":
		d, bad = 24*time.Hour, nil
	case "week":
		d, bad = 7*24*time.Hour, nil
	}
	if err != nil || n <= 0 || bad != nil || d <= 0 {
		return errors.New(`must be a number of calls in a period, such as "1000/day" or "50/10m"`)
	}
	*calls, *every = n, d
	return nil
}

// readIntOrUnlimited reads a whole number above 0, or "unlimited", which is stored as -1.
func readIntOrUnlimited(to *int, v configfile.Node) error {
	if s, ok := v.TextValue(); ok && s == "unlimited" {
		*to = -1
		return nil
	}
	n, ok := v.PositiveInt()
	if !ok {
		return errors.New(`must be a whole number above 0, or "unlimited"`)
	}
	*to = n
	return nil
}

// readFraction reads a number from 0 to 1. It stores 0 as -1, because 0 in a field means the default.
func readFraction(to *float64, v configfile.Node) error {
	x, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != configfile.Number || err != nil || !(x >= 0 && x <= 1) {
		return errors.New("must be a number from 0 to 1")
	}
	*to = x
	if x == 0 {
		*to = -1
	}
	return nil
}

// readSeconds reads a number of seconds above 0, or a time such as "30m".
func readSeconds(to *time.Duration, v configfile.Node) error {
	d, ok := v.Duration()
	if _, err := strconv.ParseFloat(v.Text, 64); err == nil {
		d, ok = d*1000, ok && d < time.Duration(1<<63-1)/1000
	}
	if !ok || d <= 0 {
		return errors.New(`must be a number of seconds above 0, or a time such as "30m"`)
	}
	*to = d
	return nil
}

// minAnswersInFlight is the least value of answers_in_flight in bytes.
const minAnswersInFlight = 1 << 20

// readAnswersInFlight reads the size of the budget of answers.
func readAnswersInFlight(to *int64, v configfile.Node) error {
	var n int64
	if readByteCount(&n, v) != nil || n < minAnswersInFlight {
		return mustBeError("a whole number of bytes from %d", minAnswersInFlight)
	}
	*to = n
	return nil
}
