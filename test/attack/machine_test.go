//go:build unix && !nomcp

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// aloneName names the test that a process of its own is for.
const aloneName = "DRAWBRIDGE_SIEGE_ALONE"

// alone runs a test in a process of its own, for what the whole process feels: it is the test binary again. It says
// whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneName) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), aloneName+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// exhausted has the process open no more files until release is called.
func exhausted(t *testing.T) (release func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil || len(held) > 1000 {
			t.Fatal(len(held), err)
		}
		held = append(held, f)
	}
	return func() {
		for _, f := range held {
			_ = f.Close()
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
}

// TestNoMoreDescriptors takes every descriptor that is left. What is open goes on; what would have to be opened is
// refused, and what cannot be recorded is not sent. When there are some again all is as before.
func TestNoMoreDescriptors(t *testing.T) {
	if !alone(t) {
		return
	}
	up, fresh, late := mcptest.NewServer(t, mcptest.Tool{Name: "safe"}),
		mcptest.NewServer(t, mcptest.Tool{Name: "safe"}), mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	dir := t.TempDir()
	h := openWith(t, gateway.Config{Store: filepath.Join(dir, "a", "store.db"), Servers: serversOf(up.Stdio("up"))})
	silent := openWith(t, gateway.Config{Store: filepath.Join(dir, "b", "store.db"),
		Servers: serversOf(fresh.Stdio("up"))})
	h.MountNew(t.Context())
	silent.MountNew(t.Context())
	const call = `{"name":"up__safe"}`
	if _, err := h.call(t.Context(), call); err != nil {
		t.Fatal(err)
	}

	release := exhausted(t)
	if _, err := h.call(t.Context(), call); err != nil {
		t.Errorf("a call that opens nothing: %v", err)
	}
	_, err := silent.call(t.Context(), call)
	if f := drawbridge.AsFault(err); err == nil || !strings.Contains(err.Error(), "record it in the audit") ||
		f.Ambiguous || f.Next == "" {
		t.Errorf("a call that cannot be recorded: %v", err)
	}
	if calls := callsAfter(fresh, 0); len(calls) > 0 {
		t.Errorf("its server hears %v", calls)
	}
	if err := h.AddServer(t.Context(), late.Stdio("late")); err == nil {
		_, err = h.Mount(t.Context(), "late")
		if err == nil {
			t.Error("a server is started without a descriptor")
		}
	}
	release()

	for _, h := range []*house{h, silent} {
		if _, err := h.call(t.Context(), call); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	eventually(t, "the server that could not be started never is", func() bool {
		_, err := h.Mount(t.Context(), "late")
		return err == nil
	})
}

// limit says how long a file may become, in bytes; below 0 as long as any.
func limit(t *testing.T, bytes int64) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Error(err)
	}
	l.Cur = l.Max
	if bytes >= 0 {
		l.Cur = uint64(bytes)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Error(err)
	}
}

// TestNoMoreRoom has the disk be full, so to say: a call whose intent cannot be recorded is not sent. The outcome of a
// short call has room beside its intent. One of a long call, whose intent is in the store by then, needs room of its own:
// without it the call is said to be of unknown outcome. When there is room again all is as before.
func TestNoMoreRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // to write more is an error then
	location := filepath.Join(t.TempDir(), "store.db")
	longest := func() (size int64) {
		all, err := filepath.Glob(filepath.Join(location+"-audit", "*.spool"))
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		for _, path := range all {
			if info, err := os.Stat(path); err == nil {
				size = max(size, info.Size())
			}
		}
		return size
	}
	full := func(c *mcptest.ServerCall) (json.RawMessage, error) {
		limit(t, longest())
		return c.Text("done"), nil
	}
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"},
		mcptest.Tool{Name: "short", Answer: func(_ context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
			return full(c)
		}},
		mcptest.Tool{Name: "long", Answer: func(ctx context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
			limit(t, -1)
			waitForRecord(ctx, t, location, "up__long")
			return full(c)
		}})
	h := openWith(t, gateway.Config{Store: location, Servers: serversOf(up.Stdio("up"))})
	h.MountNew(t.Context())
	const little = 64 << 10 // no room is made ahead then, so that the file ends where its records do
	limit(t, little)
	if _, err := h.call(t.Context(), `{"name":"up__safe"}`); err != nil {
		t.Fatal(err)
	}
	calls := len(callsAfter(up, 0))

	limit(t, longest()+100)
	_, err := h.call(t.Context(), `{"name":"up__safe"}`)
	limit(t, little)
	if f := drawbridge.AsFault(err); err == nil || f.Code != drawbridge.ServerError || f.Ambiguous ||
		!strings.Contains(f.Next, "the disk has room") {
		t.Errorf("a call without room for its intent: %v", err)
	}
	if now := len(callsAfter(up, 0)); now != calls {
		t.Errorf("the server hears %d calls more", now-calls)
	}
	if result, err := h.call(t.Context(), `{"name":"up__short"}`); err != nil || !strings.Contains(result, "done") {
		t.Errorf("a short call when there is no more room: %s, %v", result, err)
	}
	limit(t, little)
	result, err := h.call(t.Context(), `{"name":"up__long"}`)
	limit(t, -1)
	if f := drawbridge.AsFault(err); err == nil || !f.Ambiguous || result != "" {
		t.Errorf("a call without room for its outcome: %s, %v", result, err)
	}
	if result, err := h.call(t.Context(), `{"name":"up__safe"}`); err != nil {
		t.Errorf("afterwards: %s, %v", result, err)
	}
}

// waitForRecord waits until a store has the intent of a call of a tool.
func waitForRecord(ctx context.Context, t *testing.T, location, card string) {
	db, err := store.Open(ctx, location, store.Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	eventually(t, "the store has no record of "+card, func() bool {
		for r, err := range db.AuditRecords(ctx, time.Time{}) {
			if err == nil && strings.Contains(string(r.Body), card) {
				return true
			}
		}
		return false
	})
}

// TestReadOnlyHome has a home in which nothing can be made: what must be kept has no place, and that is said with what
// to do; without a store, which a person can ask for, everything else works.
func TestReadOnlyHome(t *testing.T) {
	home := t.TempDir()
	if os.Getuid() == 0 { // whom rights do not stop
		if home = "/sys/kernel"; runtime.GOOS != "linux" {
			t.Skip("no directory here stops root")
		}
	} else if err := os.Chmod(home, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "drawbridge-test"), 0o700); err == nil {
		t.Skip("the home is not read-only: ", os.Remove(filepath.Join(home, "drawbridge-test")))
	}
	env := map[string]string{"HOME": home, gateway.KeychainVariable: "off"}
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	c := gateway.Config{
		Servers: serversOf(up.Stdio("up")), Dir: t.TempDir(), LookupEnv: func(name string) (string, bool) {
			v,
				ok := env[name]
			return v, ok
		},
	}
	_, err := gateway.Open(t.Context(), c)
	if f := drawbridge.AsFault(err); err == nil || !strings.Contains(f.Next, "--store") {
		t.Errorf("a store in it: %v", err)
	}
	c.Store = gateway.MemoryStore
	h := openWith(t, c)
	h.MountNew(t.Context())
	if _, err := h.call(t.Context(), `{"name":"up__safe"}`); err != nil {
		t.Errorf("without a store: %v", err)
	}
}
