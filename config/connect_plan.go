package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// ConnectOptions locate the configurations of clients and their backups.
type ConnectOptions struct {
	Options
	// BackupDir is an absolute path. It is created when needed, with mode 0700; files in it have mode 0600, because
	// a client's configuration may hold secrets.
	BackupDir string
}

// A ConnectPlan is a planned change of a client's configuration.
type ConnectPlan struct {
	Client Client
	// Path is the file that changes.
	Path string
	// Changes describes the change, one line for each step; empty if nothing changes.
	Changes []string
	// Diff shows the change as a unified diff. It shows only values that Drawbridge writes and words common to all such
	// files; other values may be secrets and are "…".
	Diff string

	before, after configfile.FileState
	backups       clientconfig.BackupDir
	// record is the new backup; nil if there is none.
	record *clientconfig.BackupRecord
	// dropBackup is set if the backup is obsolete after the change; dirs are removed then if they are empty.
	dropBackup bool
	emptyDirs  []string
}

// IsEmpty reports whether the client's configuration needs no change.
func (p *ConnectPlan) IsEmpty() bool { return p.after.Equal(p.before) }

// PlanConnect plans to add Drawbridge to a client's configuration, as the server ClientEntryName, and to remove the
// servers named in replace. A different entry of that name is replaced. Servers in replace that do not exist are
// ignored.
//
// The error is a *drawbridge.Fault: for an unknown client, a missing home or backup directory, or a file that cannot be
// read or edited.
func PlanConnect(o ConnectOptions, id string, entry ClientEntry, replace []string) (*ConnectPlan, error) {
	p, old, err := newPlan(o, id)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(entry.Command) {
		return nil, configfile.FileFault("connect "+id, errors.New("the command must be an absolute path"))
	}
	if err := p.planContent(old, entry, replace); err != nil {
		return nil, configfile.FileFault("change "+p.Path, err)
	}
	p.Diff = redactedDiff(p.Path, p.before.Content(), p.after.Content(), nonSecretWords(p.Client, entry))
	return p, nil
}

// PlanDisconnect plans to remove Drawbridge from a client's configuration. If the file is unchanged since PlanConnect's
// plan was applied, its former content is restored byte for byte, or it is removed if there was none. If the file was
// edited since, only our entry is removed, replaced entries are restored, and the edits stay. The errors are those of
// PlanConnect.
func PlanDisconnect(o ConnectOptions, id string) (*ConnectPlan, error) {
	p, old, err := newPlan(o, id)
	if err != nil {
		return nil, err
	}
	p.dropBackup = true
	if p.after, err = p.Client.restoredState(old, p.before); err != nil {
		return nil, configfile.FileFault("change "+p.Path, err)
	}
	if old != nil && !p.after.Exists {
		p.emptyDirs = old.CreatedDirs
	}
	p.describeUndo(old)
	p.Diff = redactedDiff(p.Path, p.before.Content(), p.after.Content(), nonSecretWords(p.Client, ClientEntry{}))
	return p, nil
}

// describeUndo describes the restored state in Changes.
func (p *ConnectPlan) describeUndo(old *clientconfig.BackupRecord) {
	has := func(v configfile.FileState, name string) bool {
		_, found, err := configfile.Get(p.Client.dialect.Format, v.Data, p.Client.entryPath(name))
		return found && err == nil
	}
	members := strings.Join(p.Client.dialect.ServersPath, ".")
	switch {
	case p.IsEmpty():
		return
	case !p.after.Exists:
		p.Changes = append(p.Changes, fmt.Sprintf("remove %s, which was created for %q", p.Path, ClientEntryName))
	case has(p.after, ClientEntryName):
		p.Changes = append(p.Changes, fmt.Sprintf("restore %q in %s", ClientEntryName, members))
	default:
		p.Changes = append(p.Changes, fmt.Sprintf("remove %q from %s", ClientEntryName, members))
	}
	if old == nil {
		return
	}
	for _, name := range old.RestoredEntries(ClientEntryName) {
		if has(p.after, name) && !has(p.before, name) {
			p.Changes = append(p.Changes, fmt.Sprintf("add %q to %s again", name, members))
		}
	}
}

// newPlan reads the client's file and its backup.
func newPlan(o ConnectOptions, id string) (*ConnectPlan, *clientconfig.BackupRecord, error) {
	c, ok := LookupClient(id)
	if !ok {
		var ids []string
		for _, c := range Clients() {
			ids = append(ids, c.ID)
		}
		return nil, nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "find the client", Err: fmt.Errorf("unknown client %q%s", id, configfile.DidYouMean(id, ids)),
			Next: "use one of " + strings.Join(ids, ", ")}
	}
	at, err := clientDirs(o.Options)
	if err != nil {
		return nil, nil, err
	}
	path := c.dialect.ConfigPath(at)
	switch {
	case !filepath.IsAbs(path):
		return nil, nil, configfile.FileFault("find the configuration of "+c.Title,
			errors.New("the home directory is not known"))
	case !filepath.IsAbs(o.BackupDir):
		return nil, nil, configfile.FileFault("back up "+path,
			errors.New("the directory for backups must be an absolute path"))
	}
	p := &ConnectPlan{Client: c, Path: path, backups: clientconfig.BackupDir(o.BackupDir)}
	target, err := configfile.ResolveLinks(path)
	if err == nil {
		p.before, _, err = configfile.ReadFile(target)
	}
	if err == nil {
		err = configfile.CheckSyntax(c.dialect.Format, p.before.Data)
	}
	if err != nil {
		return nil, nil, configfile.FileFault("read "+path, errors.New(configfile.WithoutPath(err)))
	}
	old, err := p.backups.Read(c.ID, path)
	return p, old, err
}

// planContent computes the new file content and the backup.
func (p *ConnectPlan) planContent(old *clientconfig.BackupRecord, entry ClientEntry, replace []string) error {
	c := p.Client
	row, err := c.entryJSON(entry)
	if err != nil {
		return err
	}
	data := p.before.Data
	replaced := map[string]json.RawMessage{}
	for _, name := range replace {
		value, found, err := configfile.Get(c.dialect.Format, data, c.entryPath(name))
		if err != nil {
			return err
		}
		if !found || name == ClientEntryName || replaced[name] != nil {
			continue
		}
		replaced[name] = value
		p.Changes = append(p.Changes, fmt.Sprintf("remove %q from %s", name, strings.Join(c.dialect.ServersPath, ".")))
		if data, err = configfile.Remove(c.dialect.Format, data, c.entryPath(name)); err != nil {
			return err
		}
	}
	had, found, err := configfile.Get(c.dialect.Format, data, c.entryPath(ClientEntryName))
	if err != nil {
		return err
	}
	before := data
	if data, err = configfile.Set(c.dialect.Format, data, c.entryPath(ClientEntryName), row); err != nil {
		return err
	}
	p.after = configfile.FileState{Data: data, Exists: true}
	word := "add %q to %s"
	if found {
		word = "change %q in %s"
	}
	if string(before) != string(data) {
		p.Changes = append(p.Changes, fmt.Sprintf(word, ClientEntryName, strings.Join(c.dialect.ServersPath, ".")))
		if found {
			replaced[ClientEntryName] = had
		}
	}
	if p.IsEmpty() {
		return nil
	}
	return p.makeBackupRecord(old, replaced)
}

// makeBackupRecord returns the backup. After two connects it still holds the state before the first.
func (p *ConnectPlan) makeBackupRecord(old *clientconfig.BackupRecord, replaced map[string]json.RawMessage) error {
	target, err := configfile.ResolveLinks(p.Path)
	if err != nil {
		return err
	}
	p.record = &clientconfig.BackupRecord{
		Client: p.Client.ID, Path: p.Path, Existed: p.before.Exists, Before: p.before.Data,
		WrittenHashes: []string{clientconfig.ContentHash(p.after.Data)}, Replaced: replaced,
		CreatedDirs: configfile.MissingDirs(filepath.Dir(target)),
	}
	if old == nil {
		return nil
	}
	original, err := p.Client.restoredState(old, p.before)
	if err != nil {
		return err
	}
	p.record.Existed, p.record.Before = original.Exists, original.Data
	p.record.CreatedDirs = clientconfig.SortDeepestFirst(append(p.record.CreatedDirs, old.CreatedDirs...))
	if slices.Contains(old.WrittenHashes, clientconfig.ContentHash(p.before.Data)) {
		p.record.WrittenHashes = append(slices.Clone(old.WrittenHashes), p.record.WrittenHashes...)
	}
	delete(replaced, ClientEntryName) // it was ours
	for name, row := range old.Replaced {
		if replaced[name] == nil { // else it was restored since, perhaps changed
			replaced[name] = row
		}
	}
	return nil
}

// restoredState returns the file's state before it was connected: byte for byte if it was not edited since.
func (c Client) restoredState(old *clientconfig.BackupRecord, now configfile.FileState) (configfile.FileState, error) {
	if !now.Exists {
		return now, nil
	}
	if old != nil && slices.Contains(old.WrittenHashes, clientconfig.ContentHash(now.Data)) {
		return configfile.FileState{Data: old.Before, Exists: old.Existed}, nil
	}
	var ours json.RawMessage
	data, err := now.Data, error(nil)
	if old != nil {
		ours = old.Replaced[ClientEntryName]
	}
	if ours == nil {
		data, err = configfile.Remove(c.dialect.Format, data, c.entryPath(ClientEntryName))
	} else {
		data, err = configfile.Set(c.dialect.Format, data, c.entryPath(ClientEntryName), ours)
	}
	if err != nil || old == nil {
		return configfile.FileState{Data: data, Exists: true}, err
	}
	for _, name := range old.RestoredEntries(ClientEntryName) {
		if _, there, err := configfile.Get(c.dialect.Format, data, c.entryPath(name)); err != nil || there {
			continue // it was restored, perhaps changed
		}
		if data, err = configfile.Set(c.dialect.Format, data, c.entryPath(name), old.Replaced[name]); err != nil {
			return configfile.FileState{}, err
		}
	}
	return configfile.FileState{Data: data, Exists: true}, nil
}

// Apply makes the change. The backup is written before the client's file. If the file changed since the plan was made,
// it is not touched; the error is a *drawbridge.Fault.
func (p *ConnectPlan) Apply() error {
	if p.IsEmpty() {
		return p.removeStaleBackup()
	}
	err := configfile.RewriteFile(p.Path, func(now configfile.FileState) (configfile.FileState, error) {
		if !now.Equal(p.before) {
			return configfile.FileState{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
				Step: "change " + p.Path,
				Err:  errors.New("the file has changed since it was read"), Next: "run the command again"}
		}
		if p.record != nil {
			if err := p.backups.Write(*p.record); err != nil {
				return configfile.FileState{}, err
			}
		}
		return p.after, nil
	})
	if err != nil {
		return err
	}
	return p.removeStaleBackup()
}

// removeStaleBackup removes an obsolete backup.
func (p *ConnectPlan) removeStaleBackup() error {
	if !p.dropBackup {
		return nil
	}
	configfile.RemoveDirs(p.emptyDirs)
	return p.backups.Remove(p.Client.ID, p.Path)
}

// nonSecretWords returns the values that may be shown: those of our entry except its environment, and words common to
// all such files.
func nonSecretWords(c Client, e ClientEntry) []string {
	words := []string{ClientEntryName, "stdio", "http", "sse", "local", "remote", "streamable_http",
		"streamable-http", "builtin"}
	return append(append(words, e.Command), e.Args...)
}
