package cli_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killRounds is how many gateways the test kills, each at another moment of its start.
const killRounds = 25

// TestSIGKILLLeavesNothing kills gateways at random moments of their mounts. Afterwards no process of theirs is left,
// not even one that began a session of its own, and the journal is whole.
//
// The killing is done by a process of its own, which makes itself the subreaper of whatever the gateways leave behind:
// that it has no child any more is the proof, without looking at process ids.
func TestSIGKILLLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "mcp.json")
	text := fmt.Sprintf(`{"servers":{
		"every": {"command": %[1]q, "env": {"MCPTEST_SERVER": "everything"}},
		"forks": {"command": %[1]q, "args": [%[2]q], "env": {"MCPTEST_SERVER": "forks"}},
		"kills": {"command": "sh", "args": ["-c", "setsid sleep 600 & kill -9 $PPID; exec sleep 600"]},
		"stays": {"command": %[1]q, "env": {"MCPTEST_SERVER": "ignore-stdin"}},
		"hangs": {"command": %[1]q, "env": {"MCPTEST_SERVER": "hang"}},
		"shell": {"command": "sh", "args": ["-c", "setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & exec sleep 600"]}}}`,
		self, filepath.Join(dir, "grandchild"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store.db")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = []string{"outlive", config, store}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("after a SIGKILL: %v\n%s", err, out)
	}

	verify := exec.CommandContext(ctx, self)
	verify.Args = []string{"drawbridge", "ledger", "verify", "--store", store, "--mcp", config}
	if out, err := verify.CombinedOutput(); err != nil {
		t.Fatalf("ledger verify: %v\n%s", err, out)
	}
}

// outlive starts and kills gateways, and fails when one leaves a process behind.
func outlive() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println("become a subreaper:", err)
		os.Exit(1)
	}
	for round := range killRounds {
		if err := killOne(os.Args[1], os.Args[2], round); err != nil {
			fmt.Printf("round %d: %v\n", round, err)
			os.Exit(1)
		}
	}
}

func killOne(config, store string, round int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"drawbridge", "serve", "--mcp", config, "--store", store}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	// Most moments of interest are in the first tenths of a second; the last rounds let the mounts finish.
	<-time.After(time.Duration(rand.IntN(20+round*round)) * time.Millisecond)
	if round == killRounds-1 {
		awaitFile(store) // on a slow machine no round before had a store
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	_ = cmd.Wait() // it was killed
	return awaitNoChildren()
}

// awaitNoChildren waits until this process has no child, its own or one that it inherited, and fails if that takes long.
func awaitNoChildren() error {
	orphans := make(chan error, 1)
	go func() { orphans <- reapAll() }()
	select {
	case err := <-orphans:
		return err
	case <-time.After(15 * time.Second):
		out, _ := exec.Command("ps", "-eo", "pid,ppid,stat,args").CombinedOutput()
		return fmt.Errorf("processes of a killed gateway are still there:\n%s", out)
	}
}

// awaitFile waits until a file exists, for a minute at most.
func awaitFile(path string) {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	end := time.After(time.Minute)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-end:
			return
		}
	}
}

// reapAll waits until this process has no child, its own or one that it inherited as a subreaper.
func reapAll() error {
	for {
		_, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}
