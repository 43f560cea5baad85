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

// ConnectOptions say where clients are, and where what they had is kept.
type ConnectOptions struct {
	Options
	// BackupDir is an absolute path. It is made when it is needed, with mode 0700; files in it have mode 0600: they
	// hold what a client's configuration held, secrets too.
	BackupDir string
}

// A ConnectPlan is a change of a client's configuration that was thought out and not made.
type ConnectPlan struct {
	Client Client
	// Path is the file that changes.
	Path string
	// Changes says in words what is done, one line each. It is empty where there is nothing to do.
	Changes []string
	// Diff shows the change as a unified diff. Of the values in it only those are shown that we write, and words that
	// every such file has; the others may be secrets, and are "…".
	Diff string

	before, after configfile.FileState
	backups       clientconfig.BackupDir
	// record is what is to be kept for the way back; nil where nothing new is.
	record *clientconfig.BackupRecord
	// dropBackup says that what was kept is of no use after this; dirs are those that go then when they are empty.
	dropBackup bool
	emptyDirs  []string
}

// IsEmpty says that the client's configuration is already as it shall be.
func (p *ConnectPlan) IsEmpty() bool { return p.after.Equal(p.before) }

// PlanConnect plans to put Drawbridge into a client's configuration, as the server ClientEntryName, and to take the
// servers named in replace out of it. An entry of that name that says something else is replaced. Servers in replace
// that are not there are ignored.
//
// The error is a *drawbridge.Fault: there is no such client, no home, no backup directory, or a file that cannot be
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

// PlanDisconnect plans to take Drawbridge out of a client's configuration. Where the file is as PlanConnect's plan left
// it, it becomes what it was before, to the byte, or goes if there was none. Where somebody has edited it since, only
// our entry is taken out, what it replaced is put back, and the edits stay. The errors are those of PlanConnect.
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

// describeUndo puts the way back into words.
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
		p.Changes = append(p.Changes, fmt.Sprintf("remove %s, which was made for %q", p.Path, ClientEntryName))
	case has(p.after, ClientEntryName):
		p.Changes = append(p.Changes, fmt.Sprintf("change %q in %s back", ClientEntryName, members))
	default:
		p.Changes = append(p.Changes, fmt.Sprintf("take %q out of %s", ClientEntryName, members))
	}
	if old == nil {
		return
	}
	for _, name := range old.RestoredEntries(ClientEntryName) {
		if has(p.after, name) && !has(p.before, name) {
			p.Changes = append(p.Changes, fmt.Sprintf("put %q back into %s", name, members))
		}
	}
}

// newPlan reads the client's file, and what is kept of it.
func newPlan(o ConnectOptions, id string) (*ConnectPlan, *clientconfig.BackupRecord, error) {
	c, ok := LookupClient(id)
	if !ok {
		var ids []string
		for _, c := range Clients() {
			ids = append(ids, c.ID)
		}
		return nil, nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "find the client", Err: fmt.Errorf("there is no client %q%s", id, configfile.DidYouMean(id, ids)),
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
			errors.New("there is no home directory"))
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

// planContent finds what the file shall hold, and what is to be kept for the way back.
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
		p.Changes = append(p.Changes, fmt.Sprintf("take %q out of %s", name, strings.Join(c.dialect.ServersPath, ".")))
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
	word := "put %q into %s"
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

// makeBackupRecord makes the record for the way back. Connected twice, the way leads back to before the first time.
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
		if replaced[name] == nil { // else somebody has put it back since, perhaps changed
			replaced[name] = row
		}
	}
	return nil
}

// restoredState gives what a file held before it was connected: to the byte where nobody else has edited it since.
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
			continue // somebody has put it back, perhaps changed
		}
		if data, err = configfile.Set(c.dialect.Format, data, c.entryPath(name), old.Replaced[name]); err != nil {
			return configfile.FileState{}, err
		}
	}
	return configfile.FileState{Data: data, Exists: true}, nil
}

// Apply makes the change. What is kept for the way back is on the disk before the client's file changes. A file that is
// no longer as it was when the plan was made is not touched; the error is a *drawbridge.Fault.
func (p *ConnectPlan) Apply() error {
	if p.IsEmpty() {
		return p.removeStaleBackup()
	}
	err := configfile.RewriteFile(p.Path, func(now configfile.FileState) (configfile.FileState, error) {
		if !now.Equal(p.before) {
			return configfile.FileState{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
				Step: "change " + p.Path,
				Err:  errors.New("the file has changed since it was looked at"), Next: "run the command again"}
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

// removeStaleBackup takes away what was kept when it is of no use any more.
func (p *ConnectPlan) removeStaleBackup() error {
	if !p.dropBackup {
		return nil
	}
	configfile.RemoveDirs(p.emptyDirs)
	return p.backups.Remove(p.Client.ID, p.Path)
}

// nonSecretWords are the values that are no secret: those of our entry but for its environment, and what every file
// has.
func nonSecretWords(c Client, e ClientEntry) []string {
	words := []string{ClientEntryName, "stdio", "http", "sse", "local", "remote", "streamable_http",
		"streamable-http", "builtin"}
	return append(append(words, e.Command), e.Args...)
}
