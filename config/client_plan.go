package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/backup"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/veil"
)

// ConnectOptions say where clients are, and where what they had is kept.
type ConnectOptions struct {
	Options
	// BackupDir is an absolute path. It is made when it is needed, with mode 0700; files in it have mode 0600: they hold
	// what a client's configuration held, secrets too.
	BackupDir string
}

// A Plan is a change of a client's configuration that was thought out and not made.
type Plan struct {
	Client Client
	// Path is the file that changes.
	Path string
	// Changes says in words what is done, one line each. It is empty where there is nothing to do.
	Changes []string
	// Diff shows the change as a unified diff. Of the values in it only those are shown that we write, and words that
	// every such file has; the others may be secrets, and are "…".
	Diff string

	before, after disk.Version
	backups       backup.Dir
	// record is what is to be kept for the way back; nil where nothing new is.
	record *backup.Record
	// forget says that what was kept is of no use after this; dirs are those that go then when they are empty.
	forget bool
	dirs   []string
}

// Nothing says that the client's configuration is already as it shall be.
func (p *Plan) Nothing() bool { return p.after.Equal(p.before) }

// PlanConnect plans to put Drawbridge into a client's configuration, as the server ClientEntry, and to take the servers
// named in replace out of it. An entry of that name that says something else is replaced. Servers in replace that are
// not there are ignored.
//
// The error is a *drawbridge.Fault: there is no such client, no home, no backup directory, or a file that cannot be
// read or edited.
func PlanConnect(o ConnectOptions, id string, entry Entry, replace []string) (*Plan, error) {
	p, old, err := newPlan(o, id)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(entry.Command) {
		return nil, disk.Broken("connect "+id, errors.New("the command must be an absolute path"))
	}
	if err := p.connect(old, entry, replace); err != nil {
		return nil, disk.Broken("change "+p.Path, err)
	}
	p.Diff = veil.Diff(p.Path, p.before.Held(), p.after.Held(), shownWords(p.Client, entry))
	return p, nil
}

// PlanDisconnect plans to take Drawbridge out of a client's configuration. Where the file is as PlanConnect's plan left
// it, it becomes what it was before, to the byte, or goes if there was none. Where somebody has edited it since, only
// our entry is taken out, what it replaced is put back, and the edits stay. The errors are those of PlanConnect.
func PlanDisconnect(o ConnectOptions, id string) (*Plan, error) {
	p, old, err := newPlan(o, id)
	if err != nil {
		return nil, err
	}
	p.forget = true
	if p.after, err = p.Client.undo(old, p.before); err != nil {
		return nil, disk.Broken("change "+p.Path, err)
	}
	if old != nil && !p.after.Exists {
		p.dirs = old.Made
	}
	p.sayUndone(old)
	p.Diff = veil.Diff(p.Path, p.before.Held(), p.after.Held(), shownWords(p.Client, Entry{}))
	return p, nil
}

// sayUndone puts the way back into words.
func (p *Plan) sayUndone(old *backup.Record) {
	has := func(v disk.Version, name string) bool {
		_, found, err := doc.Get(p.Client.known.Format, v.Data, p.Client.at(name))
		return found && err == nil
	}
	members := strings.Join(p.Client.known.Member, ".")
	switch {
	case p.Nothing():
		return
	case !p.after.Exists:
		p.Changes = append(p.Changes, fmt.Sprintf("remove %s, which was made for %q", p.Path, ClientEntry))
	case has(p.after, ClientEntry):
		p.Changes = append(p.Changes, fmt.Sprintf("change %q in %s back", ClientEntry, members))
	default:
		p.Changes = append(p.Changes, fmt.Sprintf("take %q out of %s", ClientEntry, members))
	}
	if old == nil {
		return
	}
	for _, name := range old.Names(ClientEntry) {
		if has(p.after, name) && !has(p.before, name) {
			p.Changes = append(p.Changes, fmt.Sprintf("put %q back into %s", name, members))
		}
	}
}

// newPlan reads the client's file, and what is kept of it.
func newPlan(o ConnectOptions, id string) (*Plan, *backup.Record, error) {
	c, ok := LookupClient(id)
	if !ok {
		var ids []string
		for _, c := range Clients() {
			ids = append(ids, c.ID)
		}
		return nil, nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "find the client", Err: fmt.Errorf("there is no client %q%s", id, doc.DidYouMean(id, ids)), Next: "use one of " + strings.Join(ids, ", ")}
	}
	at, err := placesOf(o.Options)
	if err != nil {
		return nil, nil, err
	}
	path := c.known.Path(at)
	switch {
	case !filepath.IsAbs(path):
		return nil, nil, disk.Broken("find the configuration of "+c.Title, errors.New("there is no home directory"))
	case !filepath.IsAbs(o.BackupDir):
		return nil, nil, disk.Broken("back up "+path, errors.New("the directory for backups must be an absolute path"))
	}
	p := &Plan{Client: c, Path: path, backups: backup.Dir(o.BackupDir)}
	target, err := disk.Target(path)
	if err == nil {
		p.before, _, err = disk.Read(target)
	}
	if err == nil {
		err = doc.Check(c.known.Format, p.before.Data)
	}
	if err != nil {
		return nil, nil, disk.Broken("read "+path, errors.New(disk.Cause(err)))
	}
	old, err := p.backups.Read(c.ID, path)
	return p, old, err
}

// connect finds what the file shall hold, and what is to be kept for the way back.
func (p *Plan) connect(old *backup.Record, entry Entry, replace []string) error {
	c := p.Client
	row, err := c.rowJSON(entry)
	if err != nil {
		return err
	}
	data := p.before.Data
	replaced := map[string]json.RawMessage{}
	for _, name := range replace {
		value, found, err := doc.Get(c.known.Format, data, c.at(name))
		if err != nil {
			return err
		}
		if !found || name == ClientEntry || replaced[name] != nil {
			continue
		}
		replaced[name] = value
		p.Changes = append(p.Changes, fmt.Sprintf("take %q out of %s", name, strings.Join(c.known.Member, ".")))
		if data, err = doc.Remove(c.known.Format, data, c.at(name)); err != nil {
			return err
		}
	}
	had, found, err := doc.Get(c.known.Format, data, c.at(ClientEntry))
	if err != nil {
		return err
	}
	before := data
	if data, err = doc.Set(c.known.Format, data, c.at(ClientEntry), row); err != nil {
		return err
	}
	p.after = disk.Version{Data: data, Exists: true}
	word := "put %q into %s"
	if found {
		word = "change %q in %s"
	}
	if string(before) != string(data) {
		p.Changes = append(p.Changes, fmt.Sprintf(word, ClientEntry, strings.Join(c.known.Member, ".")))
		if found {
			replaced[ClientEntry] = had
		}
	}
	if p.Nothing() {
		return nil
	}
	return p.remember(old, replaced)
}

// remember makes the record for the way back. Connected twice, the way leads back to before the first time.
func (p *Plan) remember(old *backup.Record, replaced map[string]json.RawMessage) error {
	target, err := disk.Target(p.Path)
	if err != nil {
		return err
	}
	p.record = &backup.Record{
		Client: p.Client.ID, Path: p.Path, Existed: p.before.Exists, Before: p.before.Data,
		Wrote: []string{backup.HashOf(p.after.Data)}, Replaced: replaced,
		Made: disk.MissingDirs(filepath.Dir(target)),
	}
	if old == nil {
		return nil
	}
	original, err := p.Client.undo(old, p.before)
	if err != nil {
		return err
	}
	p.record.Existed, p.record.Before = original.Exists, original.Data
	p.record.Made = backup.DeepestFirst(append(p.record.Made, old.Made...))
	if slices.Contains(old.Wrote, backup.HashOf(p.before.Data)) {
		p.record.Wrote = append(slices.Clone(old.Wrote), p.record.Wrote...)
	}
	delete(replaced, ClientEntry) // it was ours
	for name, row := range old.Replaced {
		if replaced[name] == nil { // else somebody has put it back since, perhaps changed
			replaced[name] = row
		}
	}
	return nil
}

// undo gives what a file held before it was connected: to the byte where nobody else has edited it since.
func (c Client) undo(old *backup.Record, now disk.Version) (disk.Version, error) {
	if !now.Exists {
		return now, nil
	}
	if old != nil && slices.Contains(old.Wrote, backup.HashOf(now.Data)) {
		return disk.Version{Data: old.Before, Exists: old.Existed}, nil
	}
	var ours json.RawMessage
	data, err := now.Data, error(nil)
	if old != nil {
		ours = old.Replaced[ClientEntry]
	}
	if ours == nil {
		data, err = doc.Remove(c.known.Format, data, c.at(ClientEntry))
	} else {
		data, err = doc.Set(c.known.Format, data, c.at(ClientEntry), ours)
	}
	if err != nil || old == nil {
		return disk.Version{Data: data, Exists: true}, err
	}
	for _, name := range old.Names(ClientEntry) {
		if _, there, err := doc.Get(c.known.Format, data, c.at(name)); err != nil || there {
			continue // somebody has put it back, perhaps changed
		}
		if data, err = doc.Set(c.known.Format, data, c.at(name), old.Replaced[name]); err != nil {
			return disk.Version{}, err
		}
	}
	return disk.Version{Data: data, Exists: true}, nil
}

// Apply makes the change. What is kept for the way back is on the disk before the client's file changes. A file that is
// no longer as it was when the plan was made is not touched; the error is a *drawbridge.Fault.
func (p *Plan) Apply() error {
	if p.Nothing() {
		return p.done()
	}
	err := disk.Rewrite(p.Path, func(now disk.Version) (disk.Version, error) {
		if !now.Equal(p.before) {
			return disk.Version{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "change " + p.Path,
				Err: errors.New("the file has changed since it was looked at"), Next: "run the command again"}
		}
		if p.record != nil {
			if err := p.backups.Write(*p.record); err != nil {
				return disk.Version{}, err
			}
		}
		return p.after, nil
	})
	if err != nil {
		return err
	}
	return p.done()
}

// done takes away what was kept when it is of no use any more.
func (p *Plan) done() error {
	if !p.forget {
		return nil
	}
	disk.RemoveDirs(p.dirs)
	return p.backups.Drop(p.Client.ID, p.Path)
}

// shownWords are the values that are no secret: those of our entry but for its environment, and what every file has.
func shownWords(c Client, e Entry) []string {
	words := []string{ClientEntry, "stdio", "http", "sse", "local", "remote", "streamable_http", "streamable-http", "builtin"}
	return append(append(words, e.Command), e.Args...)
}
