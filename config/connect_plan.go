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

// ConnectOptions locate the configuration files of clients, and the directory for backups of these files.
type ConnectOptions struct {
	Options
	// BackupDir is the absolute path of the directory for backups. It is created with mode 0700 if it does not exist.
	// Backups have mode 0600, because a client's configuration may contain secrets.
	BackupDir string
}

// A ConnectPlan is a planned change of a client's configuration. Nothing is written before Apply.
type ConnectPlan struct {
	Client Client
	// Path is the path of the client's configuration file.
	Path string
	// Changes describes the change for people, one line for each step; empty if nothing changes.
	Changes []string
	// Diff shows the change as a unified diff. It shows only values that Drawbridge writes, and words that are common
	// in such files, such as "stdio". Other values may be secrets and are replaced by "…".
	Diff string

	before, after configfile.FileState
	backups       clientconfig.BackupDir
	// record is the backup of the client's file that Apply writes; nil if Apply writes no backup.
	record *clientconfig.BackupRecord
	// dropBackup is set if Apply removes the backup of an earlier connect, because the plan restores the file. Apply
	// then also removes those directories in emptyDirs that are empty.
	dropBackup bool
	emptyDirs  []string
}

// IsEmpty reports whether the plan does not change the client's configuration.
func (p *ConnectPlan) IsEmpty() bool { return p.after.Equal(p.before) }

// PlanConnect plans to add Drawbridge to a client's configuration, as the server named ClientEntryName. A different
// entry of that name is replaced. The plan also removes the servers named in replace; names that do not exist are
// ignored.
//
// The error is a *drawbridge.Fault. It reports an unknown client, a missing home or backup directory, a relative
// command, or a file that cannot be read or edited.
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

// PlanDisconnect plans to remove Drawbridge from a client's configuration. If the file still has the content that
// Drawbridge wrote, the content from before the connect is restored byte for byte. A file that did not exist before the
// connect is removed. If the file was edited after the connect, the plan keeps the edits. It then removes only
// Drawbridge's entry and restores the entries that the connect replaced. The errors are those of PlanConnect.
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

// describeUndo appends a description of each step of a disconnect to Changes. old is the backup of the connect; nil if
// there is none.
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

// newPlan reads the client's configuration file and its backup. It returns a plan without changes, and the backup; the
// backup is nil if there is none.
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

// planContent computes the new content of the client's file, the descriptions of the changes, and the backup to write.
// old is the backup of an earlier connect; nil if there is none.
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

// makeBackupRecord sets p.record to the backup to write. If an earlier connect made the backup old, the new backup
// still contains the state of the file before that first connect.
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
	delete(replaced, ClientEntryName) // an earlier entry of Drawbridge is not restored
	for name, row := range old.Replaced {
		if replaced[name] == nil { // otherwise the entry was restored since, and may have been changed
			replaced[name] = row
		}
	}
	return nil
}

// restoredState returns the state of the client's file without Drawbridge. now is the present state. If now has exactly
// the content that Drawbridge wrote, the result is the state before the connect. Otherwise the result is now without
// Drawbridge's entry, and with the entries that the connect removed. old is the backup of the connect; nil if there is
// none.
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
			continue // the entry was restored since, and may have been changed
		}
		if data, err = configfile.Set(c.dialect.Format, data, c.entryPath(name), old.Replaced[name]); err != nil {
			return configfile.FileState{}, err
		}
	}
	return configfile.FileState{Data: data, Exists: true}, nil
}

// Apply applies the plan. It writes the backup before the client's file. If the file changed since the plan was made,
// Apply returns a *drawbridge.Fault and does not touch the file.
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

// removeStaleBackup removes the backup and the empty directories if dropBackup is set; otherwise it does nothing.
func (p *ConnectPlan) removeStaleBackup() error {
	if !p.dropBackup {
		return nil
	}
	configfile.RemoveDirs(p.emptyDirs)
	return p.backups.Remove(p.Client.ID, p.Path)
}

// nonSecretWords returns the values that a diff may show. They are words that are common in clients' files, and the
// command and arguments of Drawbridge's entry, but not its environment.
func nonSecretWords(c Client, e ClientEntry) []string {
	words := []string{ClientEntryName, "stdio", "http", "sse", "local", "remote", "streamable_http",
		"streamable-http", "builtin"}
	return append(append(words, e.Command), e.Args...)
}
