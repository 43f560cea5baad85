//go:build bench

package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// A contender is one way to the same answer.
type contender struct {
	name    string
	clients []client
	request request
	// fresh, where it is not nil, returns a request for each call in the place of that one.
	fresh func() request
	// p is the program between client and server, whose own processes are counted. A way without one has none.
	p *benchProcess
}

// next is the request of its next call.
func (c *contender) next() request {
	if c.fresh != nil {
		return c.fresh()
	}
	return c.request
}

// several makes calls one after the other.
func (c *contender) several(n int) error {
	for range n {
		if _, err := c.clients[0].call(c.next()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// atOnce makes calls by all clients at the same time.
func (c *contender) atOnce(n int) error {
	errs := make([]error, len(c.clients))
	var callers sync.WaitGroup
	for i, one := range c.clients {
		callers.Go(func() {
			for range n / len(c.clients) {
				if _, errs[i] = one.call(c.request); errs[i] != nil {
					return
				}
			}
		})
	}
	callers.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// A reading is what was measured of a contender: times in microseconds, one of each round.
type reading struct {
	p50, p99 []float64
	rate     []float64 // calls a second
	cpu      []float64 // of the program's own processes, a call
	syscalls float64   // of the same, a call; zero if they were not counted
	countBy  string
}

// readings are those of a run, by name of the contender. All rounds of a run are interleaved.
type readings map[string]*reading

func (r readings) of(c *contender) *reading {
	if r[c.name] == nil {
		r[c.name] = &reading{}
	}
	return r[c.name]
}

// A meter counts the processor time of each contender from one round to the next. What a program does after its last
// answer, such as keeping a record, so belongs to the calls before.
type meter struct {
	before map[string]usage
	calls  map[string]int
}

func newMeter() *meter { return &meter{before: map[string]usage{}, calls: map[string]int{}} }

// round is called before a contender makes its calls of a round, and with none once all are over.
func (m *meter) round(c *contender, calls int, into *reading) {
	now := usageOf(c.p)
	if before, ok := m.before[c.name]; ok && len(now) > 0 {
		into.cpu = append(into.cpu, now.since(before)/float64(m.calls[c.name]))
	}
	m.before[c.name], m.calls[c.name] = now, calls
}

// latencies measures one call after the other, in interleaved rounds.
func latencies(t testing.TB, rounds, calls int, all ...*contender) readings {
	t.Helper()
	result, used := readings{}, newMeter()
	took := make([]float64, calls)
	for range rounds {
		for _, c := range all {
			r := result.of(c)
			used.round(c, calls, r)
			for i := range took {
				request := c.next()
				began := time.Now()
				if _, err := c.clients[0].call(request); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				took[i] = microseconds(began)
			}
			r.p50, r.p99 = append(r.p50, median(took)), append(r.p99, quantile(took, 0.99))
		}
	}
	finish(t, result, used, calls, (*contender).several, all)
	return result
}

// alternating measures one call of each contender in turn: what moves the machine for longer than a call moves all of
// them. Each turn has another order, or what one does after its answer would always fall on the same other.
func alternating(t testing.TB, rounds, calls int, all ...*contender) readings {
	t.Helper()
	result, used := readings{}, newMeter()
	took := make([][]float64, len(all))
	order := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		for i, c := range all {
			used.round(c, calls, result.of(c))
			took[i] = took[i][:0]
		}
		for range calls {
			for _, i := range order.Perm(len(all)) {
				c := all[i]
				request := c.next()
				began := time.Now()
				if _, err := c.clients[0].call(request); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				took[i] = append(took[i], microseconds(began))
			}
		}
		for i, c := range all {
			r := result.of(c)
			r.p50, r.p99 = append(r.p50, median(took[i])), append(r.p99, quantile(took[i], 0.99))
		}
	}
	finish(t, result, used, calls, (*contender).several, all)
	return result
}

// rates measures how many calls a second go through when all clients of a contender call at once.
func rates(t testing.TB, rounds, calls int, all ...*contender) readings {
	t.Helper()
	result, used := readings{}, newMeter()
	for range rounds {
		for _, c := range all {
			r := result.of(c)
			used.round(c, calls/len(c.clients)*len(c.clients), r)
			began := time.Now()
			if err := c.atOnce(calls); err != nil {
				t.Fatal(err)
			}
			r.rate = append(r.rate, float64(calls)/time.Since(began).Seconds())
		}
	}
	finish(t, result, used, calls, (*contender).atOnce, all)
	return result
}

// finish ends the last round, and then counts system calls in a run of its own: counting costs the calls time.
func finish(t testing.TB, result readings, used *meter, calls int, run func(*contender, int) error, all []*contender) {
	t.Helper()
	for _, c := range all {
		used.round(c, 0, result.of(c))
	}
	for _, c := range all {
		if c.p == nil {
			continue
		}
		n := min(calls, 400) / len(c.clients) * len(c.clients)
		own, _ := family(c.p.cmd.Process.Pid)
		count, by, err := countSyscalls(own, func() error { return run(c, n) })
		if err != nil {
			t.Fatal(err)
		}
		result.of(c).syscalls, result.of(c).countBy = count/float64(n), by
	}
}

func microseconds(began time.Time) float64 {
	return float64(time.Since(began)) / float64(time.Microsecond)
}

func milliseconds(began time.Time) float64 {
	return float64(time.Since(began)) / float64(time.Millisecond)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*q))]
}

// ratio is the median of the rounds' ratios: a slow moment slows both halves of its round. It is zero if one of both
// was not measured.
func ratio(subject, control []float64) float64 {
	var each []float64
	for i := range min(len(subject), len(control)) {
		each = append(each, subject[i]/control[i])
	}
	return median(each)
}

func minus(a, b []float64) []float64 {
	var each []float64
	for i := range min(len(a), len(b)) {
		each = append(each, a[i]-b[i])
	}
	return each
}

// costs are the columns beside a timed row: what a call costs the program's own processes, and its time, or its rate,
// divided by that of each control in the same run. Zero means that it was not measured or that there is none.
type costs struct {
	cpu, syscalls                float64
	reverse, bytes, inline, hand float64
}

// The names of the controls, which costs looks for.
const (
	reverseProxy = "byte reverse proxy"
	relayBytes   = "relay of bytes"
	relayInline  = "relay that replaces ids, inline"
	relayHands   = "relay that replaces ids, two hand-offs"
)

// costs returns the columns of a contender.
func (r readings) costs(c *contender) costs {
	own := r.of(c)
	to := func(control string) float64 {
		other := r[control]
		switch {
		case other == nil || control == c.name:
			return 0
		case len(own.rate) > 0:
			return ratio(own.rate, other.rate)
		}
		return ratio(own.p50, other.p50)
	}
	return costs{median(own.cpu), own.syscalls, to(reverseProxy), to(relayBytes), to(relayInline), to(relayHands)}
}

// ratio is a line that compares the medians of two contenders, or their rates.
func (r readings) ratio(what string, subject, control *contender, bar float64) line {
	a, b := r.of(subject), r.of(control)
	l := line{what: what, subject: r.show(subject), control: r.show(control), format: "%.2f", bar: bar, timed: true,
		costs: r.costs(subject)}
	if l.least = len(a.rate) > 0; l.least {
		l.value = ratio(a.rate, b.rate)
	} else {
		l.value = ratio(a.p50, b.p50)
	}
	return l
}

func (r readings) show(c *contender) string {
	if one := r.of(c); len(one.rate) > 0 {
		return fmt.Sprintf("%s %.0f/s", c.name, median(one.rate))
	}
	return fmt.Sprintf("%s %.0f µs", c.name, median(r.of(c).p50))
}

// each returns a line without a bar for every contender, compared with direct calls.
func (r readings) each(what string, direct *contender, all ...*contender) (table []line) {
	for _, c := range all {
		l := r.ratio(what+", "+c.name+" ÷ "+direct.name, c, direct, 0)
		l.least = false
		if one := r.of(c); len(one.p99) > 0 {
			l.subject += fmt.Sprintf(", p99 %.0f µs", median(one.p99))
			l.control = fmt.Sprintf("added %.0f µs", median(minus(one.p50, r.of(direct).p50)))
		}
		table = append(table, l.info())
	}
	return table
}

// A line is one row of the table.
type line struct {
	what             string
	subject, control string
	value            float64
	format           string // of value and bar
	bar              float64
	least            bool
	timed            bool // depends on the machine's mood: not held against a short run
	printed          bool // has no bar
	// fatal, where it is not zero, is the value from which on the run fails. Otherwise a miss is only printed.
	fatal float64
	// missing, where it is not empty, is why the row could not be measured.
	missing string
	costs   costs
}

// held makes each line fail the run where it misses its bar.
func held(table []line) []line {
	for i := range table {
		if table[i].fatal == 0 {
			table[i].fatal = table[i].bar
		}
	}
	return table
}

// info is the line without a bar.
func (l line) info() line {
	l.printed = true
	return l
}

func (l line) ok() bool { return l.printed || l.missing != "" || l.within(l.bar) }

// fails reports whether the run fails by the line.
func (l line) fails() bool {
	return !l.printed && l.missing == "" && l.fatal != 0 && !l.within(l.fatal) && !(l.timed && testing.Short())
}

func (l line) within(bar float64) bool {
	if l.least {
		return l.value >= bar
	}
	return l.value <= bar
}

// target is the bar as the table shows it.
func (l line) target() string {
	switch {
	case l.printed:
		return "·"
	case l.least:
		return fmt.Sprintf("≥ "+l.format, l.bar)
	}
	return fmt.Sprintf("≤ "+l.format, l.bar)
}

func (l line) verdict() string {
	switch {
	case l.missing != "":
		return "SKIPPED"
	case l.printed:
		return "·"
	case l.ok():
		return "ok"
	}
	return "MISSED"
}

// heading names the columns of a table.
const heading = "\trow\tmeasured\tcontrol\tvalue\tbar\tCPU µs\tsystem calls\t÷ reverse\t÷ bytes\t÷ inline\t÷ hand-offs\n"

// write adds the line to a table.
func (l line) write(w io.Writer) {
	value := fmt.Sprintf(l.format, l.value)
	if l.missing != "" {
		value, l.subject = "·", l.missing
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s", l.verdict(), l.what, l.subject, l.control, value, l.target())
	if l.costs == (costs{}) {
		fmt.Fprintln(w)
		return
	}
	for i, column := range []float64{l.costs.cpu, l.costs.syscalls, l.costs.reverse, l.costs.bytes, l.costs.inline,
		l.costs.hand} {
		switch {
		case column == 0 && i == 1 && l.costs.cpu != 0:
			fmt.Fprint(w, "\tnot measured")
		case column == 0:
			fmt.Fprint(w, "\t·")
		default:
			fmt.Fprintf(w, "\t%.*f", [...]int{0, 1, 2, 2, 2, 2}[i], column)
		}
	}
	fmt.Fprintln(w)
}
