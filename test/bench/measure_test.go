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
	// fresh, where it is not nil, gives a request for each call in the place of that one.
	fresh func() request
}

// next is the request of its next call.
func (c *contender) next() request {
	if c.fresh != nil {
		return c.fresh()
	}
	return c.request
}

// latencies measures one call after the other, in interleaved rounds, and gives the median of each round.
func latencies(t testing.TB, rounds, calls int, all ...*contender) map[string][]float64 {
	t.Helper()
	medians := map[string][]float64{}
	for range rounds {
		for _, c := range all {
			took := make([]float64, calls)
			for i := range took {
				began := time.Now()
				if _, err := c.clients[0].call(c.request); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				took[i] = float64(time.Since(began)) / float64(time.Microsecond)
			}
			medians[c.name] = append(medians[c.name], median(took))
		}
	}
	return medians
}

// alternating measures one call of each contender in turn, and gives the median of each round: what moves the machine
// for longer than a call moves all of them. Each turn has another order, or what one does after its answer would
// always fall on the same other.
func alternating(t testing.TB, rounds, calls int, all ...*contender) map[string][]float64 {
	t.Helper()
	medians := map[string][]float64{}
	took := make([][]float64, len(all))
	order := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		for range calls {
			for _, i := range order.Perm(len(all)) {
				c := all[i]
				r := c.next()
				began := time.Now()
				if _, err := c.clients[0].call(r); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				took[i] = append(took[i], float64(time.Since(began))/float64(time.Microsecond))
			}
		}
		for i, c := range all {
			medians[c.name] = append(medians[c.name], median(took[i]))
			took[i] = took[i][:0]
		}
	}
	return medians
}

// rates measures how many calls a second go through when all clients of a contender call at once.
func rates(t testing.TB, rounds, calls int, all ...*contender) map[string][]float64 {
	t.Helper()
	perSecond := map[string][]float64{}
	for range rounds {
		for _, c := range all {
			errs := make([]error, len(c.clients))
			var callers sync.WaitGroup
			began := time.Now()
			for i, one := range c.clients {
				callers.Go(func() {
					for range calls / len(c.clients) {
						if _, errs[i] = one.call(c.request); errs[i] != nil {
							return
						}
					}
				})
			}
			callers.Wait()
			took := time.Since(began).Seconds()
			for _, err := range errs {
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
			perSecond[c.name] = append(perSecond[c.name], float64(calls)/took)
		}
	}
	return perSecond
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ratio is the median of the rounds' ratios: a slow moment slows both halves of its round.
func ratio(subject, control []float64) float64 {
	each := make([]float64, len(subject))
	for i := range each {
		each[i] = subject[i] / control[i]
	}
	return median(each)
}

func minus(a, b []float64) []float64 {
	each := make([]float64, len(a))
	for i := range each {
		each[i] = a[i] - b[i]
	}
	return each
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
}

func (l line) ok() bool {
	if l.least {
		return l.value >= l.bar
	}
	return l.value <= l.bar
}

// write adds the line to a table.
func (l line) write(w io.Writer) {
	sign, verdict := "≤", "ok"
	if l.least {
		sign = "≥"
	}
	if !l.ok() {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t"+l.format+"\t%s "+l.format+"\n", verdict, l.what, l.subject, l.control,
		l.value, sign, l.bar)
}
