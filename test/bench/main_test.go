//go:build bench

package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// roleVariable names what a process of this binary is to be; the tests where it is not set.
const roleVariable = "DRAWBRIDGE_BENCH_ROLE"

// drawbridge is the program under test, and leanUpstream a server of the official SDK in a binary of its own. TestMain
// builds both once.
var drawbridge, leanUpstream string

func TestMain(m *testing.M) {
	gateway.RunReaperProcess()
	mcptest.RunIfServer()
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "drawbridge-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	drawbridge, leanUpstream = filepath.Join(bin, "drawbridge"), filepath.Join(bin, "upstream")
	for path, source := range map[string]string{
		drawbridge: "github.com/drawbridge-mcp/drawbridge/cmd/drawbridge", leanUpstream: "./testdata/upstream",
	} {
		built := path + ".built"
		out, err := exec.Command("go", "build", "-trimpath", "-o", built, source).CombinedOutput()
		if err == nil {
			err = install(built, path)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", source, err, out)
			return 1
		}
	}
	return m.Run()
}

// install copies a program page by page. What the system keeps of a file that was written in large pieces it maps in
// large pieces: a process that reads a byte of it has up to 13 MB more resident, or not, as it happens.
func install(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(program, os.Getpagesize()) {
		if _, err := f.Write(page); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Close(), os.Remove(from))
}

// play is the main of a process in a role. None waits for its input in a system call: see package stdin.
func play(role string, args []string) error {
	own := os.Stdin
	os.Stdin = process.PolledStdin(own, os.Stdout)
	defer runtime.KeepAlive(own)
	switch role {
	case "upstream":
		return upstream(args)
	case "silent":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "byhand":
		return byHand(args)
	case "relay":
		return relay(args[0], args[1:])
	case "tracepoint":
		return tracepoint()
	case "fill":
		return fill(args)
	case "reverse":
		return reverse(args[0])
	case "naive":
		return naive(args)
	case "gateway":
		return embedded(args[0], args[1])
	}
	return fmt.Errorf("no such role")
}
