package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// maxPassphrase bounds the file of a passphrase.
const maxPassphrase = 4 << 10

// ReadPassphrase returns the text of a file without the line ends at its end. The error is a UserError, and has none of
// the text.
func ReadPassphrase(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", userErrorf("read the passphrase: %v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassphrase+1))
	passphrase := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", userErrorf("read the passphrase: %v", err)
	case passphrase == "", len(text) > maxPassphrase:
		return "", userErrorf("read the passphrase: %s is empty, or longer than %d bytes", path, maxPassphrase)
	}
	return passphrase, nil
}

// BackUp writes an archive of the store and the vault, and has that on record before. The error names the next step.
func (r *Service) BackUp(ctx context.Context, path string, o gateway.BackupOptions) (report gateway.BackupReport,
	err error) {
	act := gateway.AdminAction{Command: "backup", Detail: filepath.Base(path)}
	err = r.o.AdminRecorder.Run(act, func() error {
		report, err = gateway.BackUp(ctx, r.o.Gateway, path, o)
		return err
	})
	return report, err
}

// Restore puts an archive in the place of the store and the vault, and has that on record in the restored store. It
// refuses while a process uses the store, which the error names.
func (r *Service) Restore(ctx context.Context, path string, o gateway.RestoreOptions) (report gateway.RestoreReport,
	err error) {
	pid, err := r.o.Hub.Process()
	if err != nil {
		return report, err
	}
	if pid != 0 {
		return report, inUseFault(fmt.Sprintf("the hub, process %d, uses the store", pid),
			fmt.Sprintf("close the clients that it serves (drawbridge ps), or kill %d; then restore", pid))
	}
	report, err = gateway.Restore(ctx, r.o.Gateway, path, o)
	if errors.Is(err, gateway.ErrStoreInUse) {
		return report, r.describeStoreUse()
	}
	if err != nil {
		return report, err
	}
	act := gateway.AdminAction{Command: "restore", Detail: filepath.Base(path)}
	return report, r.o.AdminRecorder.Run(act, func() error { return nil })
}

func inUseFault(what, next string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "restore",
		Err: errors.New(what), Next: next}
}

// describeStoreUse returns the error for a store that a process has open, with the process where the system names it.
func (r *Service) describeStoreUse() error {
	location, err := gateway.StoreLocationFor(r.o.Gateway)
	if err != nil {
		return err
	}
	var names, pids []string
	for _, p := range findFileUsers(location) {
		names = append(names, fmt.Sprintf("process %d (%s)", p.pid, p.program))
		pids = append(pids, fmt.Sprint(p.pid))
	}
	if len(names) == 0 {
		return inUseFault("another process has the store open", "end the programs that use it; then restore")
	}
	return inUseFault("the store is open in "+strings.Join(names, " and "),
		"end it (kill "+strings.Join(pids, " ")+"); then restore")
}

// A fileUser is a process that has a file open.
type fileUser struct {
	pid     int
	program string
}
