package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// pool returns n tools, taken from the corpora in turn. If all corpora together have fewer than n tools, the tools
// are repeated under other names.
func pool(corpora []corpus, n int) []index.Document {
	var all []index.Document
	for i := 0; len(all) < n; i++ {
		before := len(all)
		for _, c := range corpora {
			if i < len(c.tools) {
				t := c.tools[i]
				t.ID = c.name + "/" + t.ID
				all = append(all, t)
			}
		}
		if len(all) == before {
			break
		}
	}
	for first, copies := len(all), 1; len(all) < n; copies++ {
		for _, t := range all[:min(first, n-len(all))] {
			other := strings.Repeat("x", copies%7) + string(rune('a'+copies%26)) + fmt.Sprint(copies)
			t.ID, t.Name, t.Server = t.ID+"/"+other, t.Name+"_"+other, t.Server+" "+other
			all = append(all, t)
		}
	}
	return all[:min(n, len(all))]
}

// A speed contains the measured speed of an arm for a number of tools: durations in milliseconds, and the heap size
// in megabytes. p50 and p95 are the median and the 95th percentile of the search time. p95While is the 95th
// percentile of the search time while tools change. change and changes are the median and the 95th percentile of the
// time to change one tool.
type speed struct {
	tools                                      int
	build, p50, p95, change, changes, p95While float64
	heap                                       float64
}

// changing is implemented by both kinds of index. Its method changes documents.
type changing interface {
	Update(put []index.Document, remove []string)
}

// rounds is the number of times that the index is built and that each question is searched for. Of the measured
// times, only the shortest is reported.
const rounds = 3

func measure(ctx context.Context, arm string, tools []index.Document, questions []string) speed {
	s := speed{tools: len(tools)}
	before := heap()
	s.build = math.Inf(1)
	var x changing
	var find func(string)
	for range rounds {
		x, find = nil, nil
		runtime.GC()
		begun := time.Now()
		x, find = made(ctx, arm)
		x.Update(tools, nil)
		s.build = min(s.build, ms(time.Since(begun)))
	}
	find("what is asked first is not measured")
	best := slices.Repeat([]float64{math.Inf(1)}, len(questions))
	for range rounds {
		ask(questions, find, func(i int, took float64) { best[i] = min(best[i], took) })
	}
	s.p50, s.p95 = quantiles(best)
	s.heap = heap() - before
	s.change, s.changes = change(x, tools)
	s.p95While = while(x, tools, questions, find)
	runtime.KeepAlive(x)
	return s
}

// made returns an empty index for an arm, and a function that searches the index for a question.
func made(ctx context.Context, arm string) (changing, func(string)) {
	if arm == index.RankLexical {
		x := index.NewLexicalIndex()
		return x, func(q string) { x.Search(q, index.MinTop) }
	}
	x := index.New(index.Options{})
	return x, func(q string) { x.Find(ctx, index.Query{Text: q, Limit: index.MinTop}) }
}

func ask(questions []string, find func(string), each func(i int, took float64)) {
	for i, q := range questions {
		begun := clock()
		find(q)
		each(i, ms(clock()-begun))
	}
}

// change returns the median and the 95th percentile of the time to change one tool.
func change(x changing, tools []index.Document) (p50, p95 float64) {
	var took []float64
	for i := range 200 {
		t := tools[i*len(tools)/200]
		t.Description += " It has changed."
		begun := clock()
		x.Update([]index.Document{t}, nil)
		took = append(took, ms(clock()-begun))
	}
	return quantiles(took)
}

// while returns the 95th percentile of the search time. During the searches, another goroutine changes up to a
// thousand tools each second.
func while(x changing, tools []index.Document, questions []string, find func(string)) float64 {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
				t := tools[i*7919%len(tools)]
				t.Description += " It has changed again."
				x.Update([]index.Document{t}, nil)
			}
		}
	}()
	best := slices.Repeat([]float64{math.Inf(1)}, len(questions))
	for range rounds {
		ask(questions, find, func(i int, took float64) { best[i] = min(best[i], took) })
	}
	close(done)
	<-ended
	_, p95 := quantiles(best)
	return p95
}

func quantiles(all []float64) (p50, p95 float64) {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2], all[len(all)*95/100]
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// heap returns the size of the heap in megabytes, after a garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// A bar is a requirement: with the given number of tools, the 95th percentile of the arm's search time must be at
// most p95 milliseconds.
type bar struct {
	arm   string
	tools int
	p95   float64
}

var bars = []bar{
	{index.RankLexical, 1_500, 0.1}, {index.RankLexical, 10_000, 0.3}, {index.RankHybrid, 1_500, 1},
	{index.RankHybrid, 10_000, 2},
}

const (
	mostBuild, mostHeap, mostChange = 500, 40, 1 // limits with few tools, in ms, MB and ms
	few, many                       = 10_000, 100_000
)

// load returns the load average of the machine, for the report. Other programs slow all measurements, because
// processor cores share caches and memory.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func everyOther(all []string) (some []string) {
	for i := 0; i < len(all); i += 2 {
		some = append(some, all[i])
	}
	return some
}

// reportSpeed measures the speed of each arm with 1,500, 10,000 and 100,000 tools, and writes the results to w.
func reportSpeed(ctx context.Context, w io.Writer, corpora []corpus) error {
	var questions []string
	for _, c := range corpora {
		for _, q := range c.queries {
			questions = append(questions, q.Query)
		}
	}
	for len(questions) > 1000 { // 1000 questions are enough for a 95th percentile
		questions = everyOther(questions)
	}
	runtime.LockOSThread() // clock measures the current thread
	defer runtime.UnlockOSThread()
	fmt.Fprintf(w, "\n## How fast\n\nThe tools of all corpora together, repeated under other names if they are too few. %d questions, %d times each; the fastest time\n"+
		"counts. Times are milliseconds on one of %d cores, except for building the index, which uses all cores and is wall-clock time. The load of\n"+
		"the machine was %s. The time of a change is the median and the 95th percentile of 200; \"while\" is the p95 of questions while tools change, up to\n"+
		"a thousand times a second.\n\n"+
		"| arm | tools | index built | p50 | p95 | p95 while | a change | heap, MB |\n|---|---|---|---|---|---|---|---|\n",
		len(questions), rounds, runtime.NumCPU(), load())
	by := map[string]map[int]speed{index.RankLexical: {}, index.RankHybrid: {}}
	sizes, byArm := []int{1_500, few, many}, []string{index.RankLexical, index.RankHybrid}
	for _, n := range sizes { // the largest last: releasing its memory would slow other measurements
		for _, arm := range byArm {
			by[arm][n] = measure(ctx, arm, pool(corpora, n), questions)
		}
	}
	var verdicts bytes.Buffer
	for _, arm := range byArm {
		for _, n := range sizes {
			s := by[arm][n]
			fmt.Fprintf(w, "| %s | %d | %.0f | %.3f | %.3f | %.3f | %.3f, %.3f | %.1f |\n", arm, s.tools, s.build,
				s.p50, s.p95, s.p95While, s.change, s.changes, s.heap)
		}
		judge(&verdicts, arm, by[arm])
	}
	fmt.Fprintf(w, "\n| wanted | | |\n|---|---|---|\n%s\nTo measure again: `go run ./internal/tools/retrievalscore -data DIR`, or `go test -bench . ./internal/index` with the sample in the tree.\n", verdicts.String())
	return nil
}

func judge(w io.Writer, arm string, by map[int]speed) {
	row := func(what string, is, most float64) {
		fmt.Fprintf(w, "| %s: %s, at most %g | %.3g | %s |\n", arm, what, most, is, verdict(is <= most))
	}
	for _, b := range bars {
		if b.arm == arm {
			row(fmt.Sprintf("p95 with %d tools, ms", b.tools), by[b.tools].p95, b.p95)
		}
	}
	row(fmt.Sprintf("%d tools indexed, ms", few), by[few].build, mostBuild)
	row(fmt.Sprintf("one of %d tools changed, ms", few), by[few].changes, mostChange)
	row(fmt.Sprintf("heap with %d tools, MB", few), by[few].heap, mostHeap)
	row(fmt.Sprintf("p50 with %d tools, as a multiple of %d", many, few), by[many].p50/by[few].p50, float64(many/few))
	row(fmt.Sprintf("%d tools indexed, as a multiple of %d", many, few), by[many].build/by[few].build,
		float64(many/few))
}
