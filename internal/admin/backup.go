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

// maxPassphrase is the maximum size of a file with a passphrase, in bytes.
const maxPassphrase = 4 << 10

// ReadPassphrase returns the content of the file at path, without line endings at its end. The error is a UserError,
// also for an empty file and for a file of more than 4 KiB. It does not contain the content.
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

// BackUp writes a backup of the store and the vault to the file path. The action is recorded in the audit.
func (r *Service) BackUp(ctx context.Context, path string, o gateway.BackupOptions) (report gateway.BackupReport,
	err error) {
	act := gateway.AdminAction{Command: "backup", Detail: filepath.Base(path)}
	err = r.o.AdminRecorder.Run(act, func() error {
		report, err = gateway.BackUp(ctx, r.o.Gateway, path, o)
		return err
	})
	return report, err
}

// Restore replaces the store and the vault with the content of the backup at path. The action is recorded in the audit
// of the restored store. If another process uses the store, Restore changes nothing and returns an error. The error
// names the process if it is known.
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

// describeStoreUse returns the error of Restore for a store that other processes have open. The error names the
// processes if the operating system can list them.
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
