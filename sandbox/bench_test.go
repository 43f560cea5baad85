package sandbox

import (
	"fmt"
	"slices"
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
