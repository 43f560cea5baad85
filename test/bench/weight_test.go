//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// weight is what Drawbridge's own processes weigh with fifty stdio servers that run: the hub and the supervisors. The
// servers are not counted.
func weight(t *testing.T) []line {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	rows := make([]server, 50)
	for i := range rows {
		rows[i] = onStdio(fmt.Sprintf("s%02d", i), self(t))
	}
	config, store := configure(t, rows...)
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	c := connect(t, p.url(t))
	for i := range rows {
		mounted(t, c, small(fmt.Sprintf("s%02d__", i)))
	}
	<-time.After(time.Second) // it releases what only its start needed
	var pids []int
	ours(p.cmd.Process.Pid, &pids)
	var resident, private, threads int
	for _, pid := range pids {
		threads += status(t, pid, "Threads:")
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			t.Skip(err) // only root can see that of a supervisor
		}
		for text := range strings.Lines(string(rollup)) {
			var kilobytes int
			name, rest, _ := strings.Cut(text, ":")
			_, _ = fmt.Sscan(rest, &kilobytes)
			switch name {
			case "Rss":
				resident += kilobytes
			case "Private_Clean", "Private_Dirty":
				private += kilobytes
			}
		}
	}
	subject := fmt.Sprintf("%d processes", len(pids))
	return []line{
		{what: "own processes, 50 stdio servers: resident memory", subject: subject, value: float64(resident) / 1024, bar: 150,
			format: "%.1f MB"},
		{what: "own processes, 50 stdio servers: private memory", subject: subject, value: float64(private) / 1024, bar: 70,
			format: "%.1f MB"},
		{what: "own processes, 50 stdio servers: threads", subject: subject, value: float64(threads), bar: 15 + 50,
			format: "%.0f"},
	}
}

// ours adds a process of Drawbridge and its children, also theirs, as far as they are Drawbridge's. A supervisor has the
// command line of the top supervisor, and a reaper that of its program.
func ours(pid int, pids *[]int) {
	*pids = append(*pids, pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(children)) {
			child, _ := strconv.Atoi(field)
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if strings.HasPrefix(string(command), "drawbridge-") {
				ours(child, pids)
			}
		}
	}
}
