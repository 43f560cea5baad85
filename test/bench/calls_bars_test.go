//go:build bench

package bench

import (
	"fmt"
	"testing"
)

const (
	callers    = 32
	legacyNote = ", legacy client"
)

func latency(t *testing.T) []line { return oneByOne(t, false) }

func legacyLatency(t *testing.T) []line { return oneByOne(t, true) }

// oneByOne measures small calls, one after the other. Only clients of one generation have bars of old.
func oneByOne(t *testing.T, old bool) []line {
	w := prepare(t, 1, old, small)
	r := latencies(t, rounds(), calls(500), &w.directHTTP, &w.viaStdio, &w.naiveHTTP, &w.reverseHTTP, &w.viaHTTP,
		&w.directStdio, &w.stdioStdio, &w.relayBytes, &w.relayInline, &w.relayHand)
	note := ""
	if old {
		note = legacyNote
	}
	what := "64-byte call" + note
	table := []line{
		r.ratio(what+", HTTP → stdio ÷ direct HTTP", &w.viaStdio, &w.directHTTP, 1.5),
		r.ratio(what+", HTTP → stdio ÷ naive proxy", &w.viaStdio, &w.naiveHTTP, 1),
		r.added(what+", time added, HTTP → HTTP ÷ reverse proxy", &w.viaHTTP, &w.reverseHTTP, &w.directHTTP, 1.5),
		r.ratio(what+", stdio → stdio ÷ direct stdio", &w.stdioStdio, &w.directStdio, 2),
	}
	if !old {
		table = held(table)
	}
	hands := r.ratio(what+", CPU, stdio → stdio ÷ relay that replaces ids", &w.stdioStdio, &w.relayHand, 3)
	hands.value = ratio(r.of(&w.stdioStdio).cpu, r.of(&w.relayHand).cpu)
	hands.subject = fmt.Sprintf("%.0f µs CPU", median(r.of(&w.stdioStdio).cpu))
	hands.control = fmt.Sprintf("%s %.0f µs CPU", w.relayHand.name, median(r.of(&w.relayHand).cpu))
	if len(r.of(&w.relayHand).cpu) == 0 {
		hands.missing = "processor time is not counted on this system"
	}
	table = append(table,
		r.ratio(what+", HTTP → stdio ÷ reverse proxy to the server's own HTTP", &w.viaStdio, &w.reverseHTTP, 1),
		r.added(what+", time added, stdio → stdio ÷ relay that replaces ids", &w.stdioStdio, &w.relayHand,
			&w.directStdio, 2.5), hands)
	table = append(table, r.each(what, &w.directHTTP, &w.reverseHTTP, &w.naiveHTTP, &w.viaStdio, &w.viaHTTP)...)
	return append(table, r.each(what, &w.directStdio, &w.relayBytes, &w.relayInline, &w.relayHand, &w.stdioStdio)...)
}

// added is a line that compares what two contenders add to direct calls.
func (r readings) added(what string, subject, control, direct *contender, bar float64) line {
	l := r.ratio(what, subject, control, bar)
	base := r.of(direct).p50
	ours, theirs := minus(r.of(subject).p50, base), minus(r.of(control).p50, base)
	l.subject = fmt.Sprintf("%s +%.0f µs", subject.name, median(ours))
	l.control = fmt.Sprintf("%s +%.0f µs", control.name, median(theirs))
	l.value = ratio(ours, theirs)
	return l
}

// largeResult compares results of 256 KiB and of 1 MiB with direct calls. From 1.5 on the run fails over HTTP, as ever.
func largeResult(t *testing.T) []line {
	var table []line
	for _, one := range []struct {
		name        string
		size, calls int
		fatal       float64
	}{{"256 KiB result", 256 << 10, 50, 1.5}, {"1 MiB result", 1 << 20, 20, 0}} {
		w := prepare(t, 1, false, func(prefix string) request { return large(prefix, one.size) })
		r := latencies(t, rounds(), calls(one.calls), &w.directHTTP, &w.viaStdio, &w.viaHTTP, &w.reverseHTTP,
			&w.naiveHTTP, &w.directStdio, &w.stdioStdio, &w.relayBytes, &w.relayInline, &w.relayHand)
		for _, way := range []struct {
			name            string
			subject, direct *contender
			fatal           float64
		}{
			{"HTTP → stdio", &w.viaStdio, &w.directHTTP, one.fatal},
			{"HTTP → HTTP", &w.viaHTTP, &w.directHTTP, one.fatal},
			{"stdio → stdio", &w.stdioStdio, &w.directStdio, 0},
		} {
			l := r.ratio(fmt.Sprintf("%s, %s ÷ direct", one.name, way.name), way.subject, way.direct, 1.4)
			l.fatal = way.fatal
			table = append(table, l)
		}
	}
	return table
}

func throughput(t *testing.T) []line { return manyAtOnce(t, false) }

func legacyThroughput(t *testing.T) []line { return manyAtOnce(t, true) }

// manyAtOnce measures the calls a second of 32 callers.
func manyAtOnce(t *testing.T, old bool) []line {
	w := prepare(t, callers, old, small)
	r := rates(t, rounds(), max(calls(2000), 2*callers), &w.directHTTP, &w.viaStdio, &w.viaHTTP, &w.reverseHTTP, &w.naiveHTTP)
	what := fmt.Sprintf("calls a second, %d callers", callers)
	if old {
		what += legacyNote
	}
	toStdio := r.ratio(what+", HTTP → stdio ÷ direct HTTP", &w.viaStdio, &w.directHTTP, 0.8)
	// Where all processes share the processors, a second HTTP hop takes from the server's share: a proxy that only
	// copies bytes stays below 0.8 of the direct rate too. So it is the control.
	toHTTP := r.ratio(what+", HTTP → HTTP ÷ reverse proxy", &w.viaHTTP, &w.reverseHTTP, 0.95)
	if !old {
		toStdio.fatal, toHTTP.fatal = toStdio.bar, 0.8
	}
	return append([]line{toStdio, toHTTP}, r.each(what, &w.directHTTP, &w.reverseHTTP, &w.naiveHTTP, &w.viaStdio,
		&w.viaHTTP)...)
}
