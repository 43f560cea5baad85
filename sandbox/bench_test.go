package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func BenchmarkRun(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	var all []time.Duration
	for b.Loop() {
		start := time.Now()
		if o := run(b, s, "print(1)", Limits{}); o.Stdout != "1\n" {
			b.Fatal(o)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	reportWorkerMemory(b, s)
}

// reportWorkerMemory reports the resident memory of a worker that has run scripts, and the part that is its own: pages of
// files are shared by all workers.
func reportWorkerMemory(b *testing.B, s *Sandbox) {
	s.background.Wait()
	for _, p := range s.idle {
		if p.runs == 0 {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
		if err != nil {
			return // not Linux
		}
		for line := range strings.Lines(string(status)) {
			var kilobytes float64
			if n, _ := fmt.Sscanf(line, "VmRSS: %f", &kilobytes); n == 1 {
				b.ReportMetric(kilobytes/1024, "worker-MiB")
			}
			if n, _ := fmt.Sscanf(line, "RssAnon: %f", &kilobytes); n == 1 {
				b.ReportMetric(kilobytes/1024, "own-MiB")
			}
		}
		return
	}
}

func BenchmarkRunAfterPause(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	var all []time.Duration
	for b.Loop() {
		<-time.After(10 * time.Millisecond)
		start := time.Now()
		run(b, s, "print(1)", Limits{})
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}

func BenchmarkRun32(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for range jobs {
				run(b, s, "print(1)", Limits{})
			}
		})
	}
	start := time.Now()
	for i := range b.N {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "runs/s")
}

func BenchmarkInnerCall(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	b.ResetTimer()
	code := fmt.Sprintf("for i in range(%d): tools.a.b(a=1, b=2)", b.N)
	if o := run(b, s, code, Limits{Calls: b.N, Time: time.Hour}); o.Error != nil {
		b.Fatal(o.Error)
	}
}

// BenchmarkLoop measures a script that only computes: a loop of a million rounds.
func BenchmarkLoop(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	const code = "def f():\n  x = 0\n  for i in range(1_000_000): x += i * i % 7\n  return x\nf()"
	for b.Loop() {
		if o := run(b, s, code, Limits{}); string(o.Value) != "1999998" {
			b.Fatal(o)
		}
	}
}

// BenchmarkFirstRun measures the first script on a machine, for which the interpreter is unpacked and compiled.
func BenchmarkFirstRun(b *testing.B) {
	for b.Loop() {
		s := openTest(b, Options{Dir: b.TempDir()})
		run(b, s, "print(1)", Limits{})
		s.Close()
	}
}

// BenchmarkFirstRunOfAProgram measures the first script of a program whose interpreter is compiled.
func BenchmarkFirstRunOfAProgram(b *testing.B) {
	for b.Loop() {
		s := openTest(b, Options{})
		if _, err := s.Run(context.Background(), Script{Code: "print(1)"}, echo); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
