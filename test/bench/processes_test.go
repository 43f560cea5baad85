//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// serverRoles are the roles of this binary that are servers behind a gateway. All other processes that a measured
// program starts are its own: hubs, supervisors, helpers.
var serverRoles = []string{"upstream", "silent", "byhand"}

// descendants returns a process and all that it started, and those that these started.
func descendants(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread) // a process that ended has no children
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil && !slices.Contains(all, child) {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// family splits the descendants of a measured program into its own processes, which include the program itself, and
// those of servers. It leaves out processes that have ended and those without a program.
func family(pid int) (own, servers []int) {
	for _, one := range descendants(pid) {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", one))
		switch {
		case one == pid:
			own = append(own, one)
		case os.IsNotExist(err):
		case isServer(one, program):
			servers = append(servers, one)
		default:
			own = append(own, one)
		}
	}
	return own, servers
}

// isServer reports whether a process runs a server of the benchmarks.
func isServer(pid int, program string) bool {
	if leanUpstream != "" && program == leanUpstream || filepath.Base(program) == "sleep" {
		return true
	}
	if self, err := os.Executable(); err != nil || program != self {
		return false
	}
	environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if role, ok := strings.CutPrefix(string(variable), roleVariable+"="); ok {
			return slices.Contains(serverRoles, role)
		}
	}
	return false
}

// usage is the processor time of a program's own processes, in microseconds by process.
type usage map[int]float64

// usageOf reads the processor time of the program and of its helpers. It returns nil if there is no program, or if the
// system does not count.
func usageOf(p *benchProcess) usage {
	if p == nil {
		return nil
	}
	own, _ := family(p.cmd.Process.Pid)
	used := usage{}
	for _, pid := range own {
		if µs, ok := processorTime(pid); ok {
			used[pid] = µs
		}
	}
	return used
}

// since returns what was used after an earlier reading.
func (u usage) since(before usage) (µs float64) {
	for pid, now := range u {
		µs += now - before[pid]
	}
	return µs
}

// memory is the sum over processes, in megabytes of 2^20 bytes.
type memory struct {
	processes, threads int
	rss, pss, private  float64
}

// memoryOf adds up the memory of processes.
func memoryOf(pids []int) (sum memory) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has ended
		}
		sum.processes++
		sum.rss += kilobytes(text, "Rss:") / 1024
		sum.pss += kilobytes(text, "Pss:") / 1024
		sum.private += (kilobytes(text, "Private_Clean:") + kilobytes(text, "Private_Dirty:")) / 1024
		if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil {
			sum.threads += len(threads)
		}
	}
	return sum
}

// kilobytes reads a number from a text such as /proc/PID/status.
func kilobytes(text []byte, member string) (n float64) {
	if _, rest, ok := strings.Cut("\n"+string(text), "\n"+member); ok {
		fmt.Sscan(rest, &n)
	}
	return n
}

func (m memory) String() string {
	return fmt.Sprintf("%d processes, RSS %.1f, PSS %.1f, private %.1f MB, %d threads", m.processes, m.rss, m.pss,
		m.private, m.threads)
}

// written is the number of bytes that processes have caused to be written to disks.
func written(pids []int) (sum float64) {
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		sum += kilobytes(text, "write_bytes:")
	}
	return sum
}

// size is the number of bytes in the files of a directory.
func size(t testing.TB, dir string) (sum int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, file os.FileInfo, err error) error {
		if err == nil && !file.IsDir() {
			sum += file.Size()
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// until asks again and again whether something holds, for as long as a limit, and returns the last answer.
func until(limit time.Duration, holds func() bool) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(limit)
	for {
		if holds() {
			return true
		}
		select {
		case <-again.C:
		case <-deadline:
			return holds()
		}
	}
}
