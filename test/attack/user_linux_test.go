//go:build !nomcp

package attack

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// asNobody does something as another user of the machine, who has no rights. It takes root to become one.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to become another user")
	}
	const nobody = 65534
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for _, become := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
			if _, _, errno := syscall.RawSyscall(become, nobody, nobody, nobody); errno != 0 {
				t.Error(errno)
				return
			}
		}
		do()
	}()
	<-done
}

// TestAnotherUserOfTheMachine is AZ-3 without the network: what a gateway keeps is its user's. Nobody else reads the
// record or the vault, or answers for the person: that is done in the store.
func TestAnotherUserOfTheMachine(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{base, filepath.Dir(base)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	location := filepath.Join(base, "state", "store.db")
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	h := openWith(t, gateway.Config{Store: location, Servers: serversOf(up.Stdio("up"))})
	h.MountNew(t.Context())
	if _, err := h.call(t.Context(), `{"name":"up__safe"}`); err != nil {
		t.Fatal(err)
	}
	var all []string
	err := filepath.WalkDir(filepath.Dir(location), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all = append(all, path)
		if info, err := e.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || len(all) < 4 {
		t.Fatal(all, err)
	}
	asNobody(t, func() {
		for _, path := range all {
			if f, err := os.Open(path); err == nil {
				t.Errorf("another user reads %s", path)
				f.Close()
			}
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				t.Errorf("another user writes %s", path)
				f.Close()
			}
		}
		if db, err := store.Open(t.Context(), location, store.Options{}); err == nil {
			t.Error("another user opens the store, where calls are approved")
			db.Close()
		}
	})
}
