package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/spawn"
)

// A ScanStatus says what taking a definition over would do.
type ScanStatus string

// The statuses.
const (
	// New is a definition whose name the person's own native files do not have.
	New ScanStatus = "new"
	// Same is one that they have already, or that an earlier definition of this scan says in the same way.
	Same ScanStatus = "same"
	// Conflict is one whose name they have with another definition.
	Conflict ScanStatus = "conflict"
	// Shadowed is one whose name an earlier definition of this scan has and says differently.
	Shadowed ScanStatus = "shadowed"
	// Barred is one that could not be mounted, or that starts Drawbridge itself.
	Barred ScanStatus = "refused"
)

// A Found is a definition that another program has in the person's own files.
type Found struct {
	Name drawbridge.ServerID
	// Provider is the Name of the program in the table of Providers, From its Title.
	Provider, From string
	Origin         Origin
	// Transport is as Server's method gives it.
	Transport string
	Status    ScanStatus
	// Reason says for people why the status is not New; empty for one that is.
	Reason string
	// Row is the definition in our own words, as it would be written under its name: variables are not put in, the members
	// stand in the order of Fields, and "imported_from" names the provider. It may hold secrets. It is empty for one that
	// is refused.
	Row json.RawMessage
	// Notes say what could not be carried over, or should be known of it.
	Notes []string
}

// Scanned is what Scan found.
type Scanned struct {
	// Rows are in the order of providers and of their files, and within a file in the file's.
	Rows []Found
	// Warnings are about files that could not be read.
	Warnings []Warning
	// Sources are the files that were read, in order.
	Sources []string
}

// Scan finds the definitions that the providers named in from, or all, have in the person's own files; what a project
// directory brings is not among them, unless the directory is the home. Of Claude Code's entries for single directories
// it takes those of the working directory. Nothing is written.
//
// Two definitions of a name are the same if they reach the same server in the same way: what is off, what a timeout is,
// where a row was taken over from, and whether a url's type is left to be found out make no difference.
//
// The error is a *drawbridge.Fault with the code InvalidInput: for a name in from that no provider has, and for a native
// file of the person's own that cannot be read, since nobody should write to that.
func Scan(o Options, from []string) (Scanned, error) {
	l, err := newLoader(o)
	if err != nil {
		return Scanned{}, err
	}
	providers, err := chosen(from)
	if err != nil {
		return Scanned{}, err
	}
	s := &scanner{loader: l, kept: o.Kept, taken: map[drawbridge.ServerID]taken{}, homes: disk.Same(l.Project, l.Home)}
	if err := s.own(); err != nil {
		return Scanned{}, err
	}
	seen := map[string]bool{}
	for _, p := range providers {
		for _, at := range p.Places {
			path := at.File(l.Base)
			if at.Root == dialect.Project && !s.homes || path == "" || seen[path] {
				continue
			}
			seen[path] = true
			s.file(p, source{path: path, kind: User, provider: p.Name, shape: at.Shape, rows: true, dir: l.Project})
		}
	}
	s.found.Warnings = l.set.Warnings
	return s.found, nil
}

// A scanner compares what other programs have with the person's own.
type scanner struct {
	*loader
	kept func(name string) (string, bool)
	// homes says that the working directory is the home: its files are the person's own.
	homes bool
	// native has what the person's own files say under each name.
	native map[drawbridge.ServerID][]string
	// taken has the first definition of each name in this scan.
	taken map[drawbridge.ServerID]taken
	found Scanned
}

type taken struct{ content, from string }

// own reads the person's own native files.
func (s *scanner) own() error {
	s.native = map[drawbridge.ServerID][]string{}
	for _, src := range once(s.discover(s.Project, Project)) {
		if src.provider != "native" || src.kind != User {
			continue
		}
		src.named = true // a broken one is an error
		s.open(&src)
		switch {
		case errors.Is(src.err, fs.ErrNotExist):
			continue
		case src.err != nil:
			return s.unreadable(src, src.err)
		}
		rows, _ := src.shape.Rows(src.root, src.dir)
		for _, row := range rows[:min(len(rows), MaxRows)] {
			s.native[idOf(row.Name)] = append(s.native[idOf(row.Name)], contentOf(s.revealed(row.Value)))
		}
	}
	s.disabled = nil // what is off by name stays so; it is no part of a definition
	return nil
}

// keptValue finds the references to values that the person keeps.
var keptValue = regexp.MustCompile(`\$\{keychain:([^}]*)\}`)

// revealed gives a row with the values that it refers to in their places.
func (s *scanner) revealed(n doc.Node) doc.Node {
	if n.Kind == doc.Text && s.kept != nil {
		n.Text = keptValue.ReplaceAllStringFunc(n.Text, func(reference string) string {
			if value, ok := s.kept(keptValue.FindStringSubmatch(reference)[1]); ok {
				return value
			}
			return reference
		})
	}
	n.Members = slices.Clone(n.Members)
	for i, m := range n.Members {
		n.Members[i].Value = s.revealed(m.Value)
	}
	return n
}

func (s *scanner) file(p dialect.Provider, src source) {
	s.open(&src)
	if errors.Is(src.err, fs.ErrNotExist) {
		return
	}
	if src.err != nil {
		_ = s.unreadable(src, src.err) // a warning: nobody named the file
		return
	}
	s.found.Sources = append(s.found.Sources, src.path)
	rows, problems := src.shape.Rows(src.root, src.dir)
	s.warnAll(src, problems)
	if len(rows) > MaxRows {
		s.warn(src, rows[MaxRows].Line, "the file has %d servers; those from here on were left out", len(rows))
		rows = rows[:MaxRows]
	}
	for _, row := range rows {
		s.found.Rows = append(s.found.Rows, s.judge(p, src, row))
	}
}

// judge says what taking a row over would do.
func (s *scanner) judge(p dialect.Provider, src source, row dialect.Row) Found {
	server, warnings := s.row(src, row)
	found := Found{
		Name: server.ID, Provider: p.Name, From: p.Title, Origin: server.Origin, Transport: server.Transport(),
	}
	for _, w := range warnings {
		found.Notes = append(found.Notes, w.note())
	}
	if why := refusal(server); why != "" {
		found.Status, found.Reason = Barred, why
		return found
	}
	value, err := doc.ParseJSON(server.Row)
	if err != nil { // a row is written as JSON by us
		found.Status, found.Reason = Barred, fmt.Sprintf("Server %q: it cannot be written as JSON", server.ID)
		return found
	}
	if row.Local {
		found.Notes = append(found.Notes, fmt.Sprintf("%s has it for this directory only", p.Title))
		if server.Command != "" {
			value = setDefault(value, "cwd", src.dir)
		}
	}
	content := contentOf(value)
	found.Row = written(dialect.Row{Value: setDefault(value, "imported_from", p.Name)}).AppendJSON(nil, false)
	first, again := s.taken[server.ID]
	native, has := s.native[server.ID]
	switch {
	case slices.Contains(native, content):
		found.Status, found.Reason = Same, "your own configuration has it"
	case again && first.content == content:
		found.Status, found.Reason = Same, "it is the one of "+first.from
	case again:
		found.Status, found.Reason = Shadowed, "the one of "+first.from+" counts before it"
	case has:
		found.Status, found.Reason = Conflict, "your own configuration has another server of that name"
	default:
		found.Status = New
	}
	if !again {
		s.taken[server.ID] = taken{content, p.Title}
	}
	return found
}

// refusal says why a row is not to be taken over, even one that is off.
func refusal(s Server) string {
	if s.Phase == drawbridge.Disabled {
		if spawn.StartsDrawbridge(s.Command, s.Args) {
			return fmt.Sprintf("Server %q: starts Drawbridge itself, which would mount itself without end", s.ID)
		}
		if s.Command == "" && s.URL == "" {
			return fmt.Sprintf("Server %q: %s", s.ID, `stdio server requires "command" field`)
		}
	}
	if s.Phase == drawbridge.Refused {
		return s.Reason
	}
	return ""
}

// note is a warning's text without the name, which stands beside it.
func (w Warning) note() string {
	return strings.TrimPrefix(w.Text, fmt.Sprintf("Server %q: ", w.Server))
}

// setDefault gives a row a member that it does not have.
func setDefault(row doc.Node, name, value string) doc.Node {
	if _, ok := row.Find(name); !ok {
		row.Members = append(slices.Clip(row.Members), doc.Member{Name: name, Value: doc.Node{Kind: doc.Text, Text: value}})
	}
	return row
}

// contentOf is what makes a definition the one it is, as JSON: the members that count in a row's hash, without those that
// say nothing.
func contentOf(row doc.Node) string {
	kept := doc.Node{Kind: doc.Table}
	for _, known := range rowMembers {
		m, ok := row.Find(known.name)
		empty := m.Value.Text == "" && len(m.Value.Items) == 0 && len(m.Value.Members) == 0 && m.Name != "expected_tools"
		if !ok || !known.hashed || empty || m.Name == "type" && m.Value.Text != "sse" {
			continue
		}
		kept.Members = append(kept.Members, m)
	}
	return string(kept.AppendJSON(nil, true))
}
