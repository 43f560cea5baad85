package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func BenchmarkRun(b *testing.B) {
	s := openTest(b, Options{})
	run(b, s, "print(1)", Limits{})
	worker := usedWorker(s)
	before := processorTime(worker)
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
	reportProcessorTime(b, s, worker, before, len(all))
	reportWorkerMemory(b, usedWorker(s))
}

// usedWorker returns a worker that has run scripts, while none runs.
func usedWorker(s *Sandbox) *workerProcess {
	s.background.Wait()
	at := slices.IndexFunc(s.idle, func(p *workerProcess) bool { return p.runs > 0 })
	if at < 0 {
		return nil
	}
	return s.idle[at]
}

// processFile returns the path of a file in /proc of the process of a worker: that of the tests with the flag -in-process.
func processFile(p *workerProcess, name string) string {
	if p.command == nil {
		return "/proc/self/" + name
	}
	return fmt.Sprintf("/proc/%d/%s", p.command.Process.Pid, name)
}

// processorTime returns the processor time that a worker has used; 0 if the system does not tell.
func processorTime(p *workerProcess) time.Duration {
	if p == nil {
		return 0
	}
	stat, err := os.ReadFile(processFile(p, "stat"))
	fields := strings.Fields(string(stat))
	if err != nil || len(fields) < 15 {
		return 0
	}
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * time.Second / 100 // Linux counts hundredths of a second for programs
}

// reportProcessorTime reports the processor time of each run: unlike the time, it is the same on a busy machine. A worker
// that was replaced has none.
func reportProcessorTime(b *testing.B, s *Sandbox, p *workerProcess, before time.Duration, runs int) {
	if used := processorTime(p) - before; p != nil && usedWorker(s) == p && used > 0 {
		b.ReportMetric(float64(used.Microseconds())/float64(runs), "cpu-us/op")
	}
}

// reportWorkerMemory reports the resident memory of a worker, and the part that is its own: workers share the pages of
// files.
func reportWorkerMemory(b *testing.B, p *workerProcess) {
	if p == nil {
		return
	}
	status, err := os.ReadFile(processFile(p, "status"))
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
	worker := usedWorker(s)
	before, runs := processorTime(worker), 0
	for b.Loop() {
		if o := run(b, s, code, Limits{}); string(o.Value) != "1999998" {
			b.Fatal(o)
		}
		runs++
	}
	reportProcessorTime(b, s, worker, before, runs)
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
		run(b, s, "print(1)", Limits{})
		s.Close()
	}
}
