//go:build peers

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// orphans names the processes that the tests started, at first or at third hand, and that nobody waits for any more. A
// process that is about to end is given five seconds. Where there is no /proc it finds none.
func orphans(bin string) []string {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	var left []string
	for range 50 {
		if left = abandoned(bin); len(left) == 0 {
			return nil
		}
		<-again.C
	}
	return left
}

// abandoned finds processes of our programs whose parent is gone.
func abandoned(bin string) []string {
	var left []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		ours := slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(w, bin) || w == node
		})
		if err != nil || !ours || parent(stat) != 1 {
			continue
		}
		left = append(left, filepath.Base(dir)+" "+strings.Join(words, " "))
	}
	return left
}

// parent reads the fourth member of /proc/PID/stat; the second is a name in parentheses, which may hold anything.
func parent(stat string) (pid int) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	var state string
	fmt.Sscan(string(text[strings.LastIndexByte(string(text), ')')+1:]), &state, &pid)
	return pid
}
