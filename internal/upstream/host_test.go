//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// hostVariable has the rows of a process that is a host program: it runs a fleet of them until it is killed.
const hostVariable = "BRIDGE_TEST_HOST"

func playHost() int {
	var rows []config.Server
	if err := json.Unmarshal([]byte(os.Getenv(hostVariable)), &rows); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := NewFleet(context.Background(), rows, Options{ProbeTimeout: 100 * time.Millisecond,
		CloseGrace: 100 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = f.Run(context.Background())
	return 0
}

// TestNothingSurvivesASIGKILL kills a host at any moment of its mounts. Its servers, and what they start, hold the end
// of a pipe: when that pipe ends, none of them is left.
func TestNothingSurvivesASIGKILL(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the full guarantee is for Linux")
	}
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	fifo := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var rows []config.Server
	for i, name := range []string{"forks", "silent-discover", "ignore-stdin", "exit-discover", "everything"} {
		row := stdioRow(t, name, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		// The shell gives descriptor 9 to the server, and that to what it starts.
		row.Args = append([]string{"-c", `exec 9>"$0"; exec "$@"`, fifo, row.Command}, row.Args...)
		row.Command = "/bin/sh"
		rows = append(rows, row)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		pipe, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		host := exec.Command(self)
		host.Env = append(os.Environ(), hostVariable+"="+string(said))
		host.Stderr = os.Stderr
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(rand.Int64N(int64(400 * time.Millisecond)))
		<-time.After(moment)
		_ = host.Process.Kill()
		_ = host.Wait()
		ended, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = pipe.Close()
		_ = ended.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := ended.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("killed after %v, something is left that the host started: %v", moment, err)
		}
		_ = ended.Close()
		awaitNoReaper(t, fifo)
	}
}

// awaitNoReaper waits until no process has word in its arguments.
func awaitNoReaper(t *testing.T, word string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		left := ""
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range lines {
			if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(word)) {
				left = string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a process is left: %s", left)
		}
	}
}
