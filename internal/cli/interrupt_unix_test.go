//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestCtrlCInACall says what was broken off, and that it may have had its effect.
func TestCtrlCInACall(t *testing.T) {
	d := newDesk(t)
	record := filepath.Join(d.home, "record")
	if err := syscall.Mkfifo(record, 0o600); err != nil {
		t.Fatal(err)
	}
	command, args, env := mcptest.ServerCommand(t, "talker", "legacy", record)
	row, err := json.Marshal(map[string]any{"command": command, "args": args,
		"env": map[string]string{mcptest.ServerVariable: strings.TrimPrefix(env[0], mcptest.ServerVariable+"=")}})
	if err != nil {
		t.Fatal(err)
	}
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(`{"servers":{"up":%s}}`, row))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	told, err := os.OpenFile(record, os.O_RDWR, 0) // which waits for nobody to write
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(told); lines.Scan(); {
			var r mcptest.TalkerEvent
			if json.Unmarshal(lines.Bytes(), &r) == nil && r.Event == "begin" && r.Name == "wait" {
				interrupt()
			}
		}
	})
	var stderr strings.Builder
	code := cli.Main(ctx, []string{"tools", "call", "up__wait"}, d.process(strings.NewReader(""), io.Discard, &stderr))
	if err := told.Close(); err != nil {
		t.Error(err)
	}
	reading.Wait()
	if want := "drawbridge: interrupted: call wait on up (it may have had its effect)\n"; code != 130 ||
		stderr.String() != want {
		t.Errorf("exit code %d, %q; want 130, %q", code, &stderr, want)
	}
}
