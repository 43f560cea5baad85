package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// An ImportStatus is the effect of importing a definition.
type ImportStatus string

// The statuses.
const (
	// ImportNew marks a definition whose name the person's own native files do not have.
	ImportNew ImportStatus = "new"
	// ImportSame marks a definition that the person has already, or that equals an earlier one of this scan.
	ImportSame ImportStatus = "same"
	// ImportConflict marks a definition whose name the person has with another definition.
	ImportConflict ImportStatus = "conflict"
	// ImportShadowed marks a definition whose name belongs to a different earlier definition of this scan.
	ImportShadowed ImportStatus = "shadowed"
	// ImportLeftOut marks a definition that the person did not choose; ScanImports returns none.
	ImportLeftOut ImportStatus = "left out"
	// ImportRefused marks a definition that could not be mounted, or that starts Drawbridge itself.
	ImportRefused ImportStatus = "refused"
)

// An ImportCandidate is a definition of another program in the person's own files.
type ImportCandidate struct {
	Name drawbridge.ServerID
	// Provider is the Name of the program in the table of Providers, From its Title.
	Provider, ProviderTitle string
	Origin                  Origin
	// Transport is the result of Server.Transport.
	Transport string
	Status    ImportStatus
	// OwnName is the name that the person's own configuration has the definition under; empty unless Status is Same.
	OwnName drawbridge.ServerID `json:"-"`
	// SameAs is the index of the earlier definition that this one equals; nil without one.
	SameAs *int `json:"-"`
	// Reason is for people: why the status is not New; empty if it is.
	Reason string
	// Raw is the definition in the native format, as it would be written under its name: variables are not expanded,
	// members are in the order of Fields, and "imported_from" names the provider. It may hold secrets. It is empty for
	// a refused one.
	Raw json.RawMessage
	// Notes describe what could not be imported, and other things to know.
	Notes []string
}

// ImportScan is the result of ScanImports.
type ImportScan struct {
	// Candidates are in the order of providers, of their files, and of the rows in a file.
	Candidates []ImportCandidate
	// Warnings are about files that could not be read.
	Warnings []Warning
	// Sources are the files that were read, in order.
	Sources []string
	// OwnNames are the names of the person's own servers, sorted.
	OwnNames []drawbridge.ServerID
}

// ScanImports finds the definitions of the named providers, or of all, in the person's own files. Project directories
// are not scanned, unless the directory is the home. Of Claude Code's entries for single directories it takes those of
// the working directory. Nothing is written.
//
// Two definitions of a name are the same if they reach the same server in the same way. Differences in enabled,
// timeouts, import source and a url's type that is left to detection do not matter.
//
// The error is a *drawbridge.Fault with the code InvalidInput: for an unknown name in from, and for a native file of
// the person's own that cannot be read, since it must not be written then.
func ScanImports(o Options, from []string) (ImportScan, error) {
	l, err := newLoader(o)
	if err != nil {
		return ImportScan{}, err
	}
	providers, err := providersByName(from)
	if err != nil {
		return ImportScan{}, err
	}
	s := &importScanner{loader: l, keychainValue: o.KeychainValue, seen: map[drawbridge.ServerID][]seenDefinition{},
		dirIsHome: configfile.SameFile(l.Project, l.Home)}
	if err := s.readUserServers(); err != nil {
		return ImportScan{}, err
	}
	seen := map[string]bool{}
	for _, p := range providers {
		for _, at := range p.Locations {
			path := at.Resolve(l.BaseDirs)
			if at.Root == clientconfig.ProjectRoot && !s.dirIsHome || path == "" || seen[path] {
				continue
			}
			seen[path] = true
			s.scanFile(p, sourceFile{path: path, kind: OriginUser, provider: p.Name, dialect: at.Shape, readRows: true,
				dir: l.Project})
		}
	}
	s.found.Warnings, s.found.OwnNames = l.set.Warnings, slices.Sorted(maps.Keys(s.userServers))
	return s.found, nil
}

// An importScanner compares definitions of other programs with the person's own.
type importScanner struct {
	*loader
	keychainValue func(name string) (string, bool)
	// dirIsHome is set if the working directory is the home: its files are the person's own.
	dirIsHome bool
	// userServers holds the definitions in the person's own files by name.
	userServers map[drawbridge.ServerID][]string
	// copies has the names of the person's own servers that were imported, maybe under another name.
	copies map[importedDefinition]drawbridge.ServerID
	// seen has the definitions of each name in this scan.
	seen  map[drawbridge.ServerID][]seenDefinition
	found ImportScan
}

type importedDefinition struct{ program, content string }

type seenDefinition struct {
	content, from string
	index         int
}

// readUserServers reads the person's own native files.
func (s *importScanner) readUserServers() error {
	s.userServers = map[drawbridge.ServerID][]string{}
	s.copies = map[importedDefinition]drawbridge.ServerID{}
	for _, src := range uniqueSources(s.conventionalSources(s.Project, OriginProject)) {
		if src.provider != "native" || src.kind != OriginUser {
			continue
		}
		src.namedByPerson = true // a broken one is an error
		s.openSource(&src)
		switch {
		case errors.Is(src.err, fs.ErrNotExist):
			continue
		case src.err != nil:
			return s.reportUnreadable(src, src.err)
		}
		rows, _ := src.dialect.Rows(src.root, src.dir)
		for _, row := range rows[:min(len(rows), MaxRows)] {
			id, content := printableID(row.Name), comparableContent(s.withKeychainValues(row.Value))
			s.userServers[id] = append(s.userServers[id], content)
			if from, ok := row.Value.Find("imported_from"); ok && from.Value.Kind == configfile.Text {
				s.copies[importedDefinition{from.Value.Text, content}] = id
			}
		}
	}
	s.disabledBy = nil // a name stays disabled; that is not part of a definition
	return nil
}

// keychainReference matches references to stored secrets.
var keychainReference = lazyregexp.New(`\$\{keychain:([^}]*)\}`)

// withKeychainValues returns a row with references replaced by stored secrets.
func (s *importScanner) withKeychainValues(n configfile.Node) configfile.Node {
	if n.Kind == configfile.Text && s.keychainValue != nil {
		n.Text = keychainReference().ReplaceAllStringFunc(n.Text, func(reference string) string {
			if value, ok := s.keychainValue(keychainReference().FindStringSubmatch(reference)[1]); ok {
				return value
			}
			return reference
		})
	}
	n.Members = slices.Clone(n.Members)
	for i, m := range n.Members {
		n.Members[i].Value = s.withKeychainValues(m.Value)
	}
	return n
}

func (s *importScanner) scanFile(p clientconfig.Provider, src sourceFile) {
	s.openSource(&src)
	if errors.Is(src.err, fs.ErrNotExist) {
		return
	}
	if src.err != nil {
		_ = s.reportUnreadable(src, src.err) // a warning: the file was not named
		return
	}
	s.found.Sources = append(s.found.Sources, src.path)
	rows, problems := src.dialect.Rows(src.root, src.dir)
	s.warnProblems(src, problems)
	if len(rows) > MaxRows {
		s.warn(src, rows[MaxRows].Line, "there are more than %d servers; those from here on were left out", MaxRows)
		rows = rows[:MaxRows]
	}
	for _, row := range rows {
		s.found.Candidates = append(s.found.Candidates, s.classify(p, src, row))
	}
}

// classify returns the effect of importing a row.
func (s *importScanner) classify(p clientconfig.Provider, src sourceFile, row clientconfig.ServerRow) ImportCandidate {
	server, warnings := s.readServer(src, row)
	found := ImportCandidate{
		Name: server.ID, Provider: p.Name, ProviderTitle: p.Title, Origin: server.Origin, Transport: server.Transport(),
	}
	for _, w := range warnings {
		found.Notes = append(found.Notes, w.textWithoutName())
	}
	if why := refusalReason(server); why != "" {
		found.Status, found.Reason = ImportRefused, why
		return found
	}
	value, err := configfile.ParseJSON(server.Raw)
	if err != nil { // rows are always written as valid JSON
		found.Status, found.Reason = ImportRefused, fmt.Sprintf("Server %q: it cannot be written as JSON", server.ID)
		return found
	}
	if row.Local {
		found.Notes = append(found.Notes, fmt.Sprintf("%s has it for this directory only", p.Title))
		if server.Command != "" {
			value = addMissingMember(value, "cwd", src.dir)
		}
	}
	if words := launch.SplitCommandLine(server.Command); words != nil {
		value = splitCommand(value, words)
		found.Notes = append(found.Notes, fmt.Sprintf(`"command" contains spaces: the words after %q go into "args"`, words[0]))
	}
	content := comparableContent(value)
	found.Raw = nativeRow(clientconfig.ServerRow{Value: addMissingMember(value, "imported_from", p.Name)}).AppendJSON(
		nil, false)
	s.compare(&found, content)
	s.seen[server.ID] = append(s.seen[server.ID], seenDefinition{content, p.Title, len(s.found.Candidates)})
	return found
}

// compare sets the status of a definition by those that the person has and by the earlier ones of its name.
func (s *importScanner) compare(found *ImportCandidate, content string) {
	earlier := s.seen[found.Name]
	equal := slices.IndexFunc(earlier, func(d seenDefinition) bool { return d.content == content })
	if equal >= 0 {
		found.SameAs = &earlier[equal].index
	}
	native, has := s.userServers[found.Name]
	copied := s.copies[importedDefinition{found.Provider, content}]
	switch {
	case slices.Contains(native, content):
		found.Status, found.Reason, found.OwnName = ImportSame, "your own configuration has it", found.Name
	case copied != "":
		found.Status, found.OwnName = ImportSame, copied
		found.Reason = fmt.Sprintf("your own configuration has it as %q", copied)
	case equal >= 0 && s.found.Candidates[*found.SameAs].Status == ImportSame:
		same := s.found.Candidates[*found.SameAs]
		found.Status, found.Reason, found.OwnName = ImportSame, same.Reason, same.OwnName
	case equal == 0:
		found.Status, found.Reason = ImportSame, "it is the one of "+earlier[0].from
	case len(earlier) > 0:
		found.Status = ImportShadowed
		found.Reason = fmt.Sprintf("skipped: %s has another server of this name, and %s comes first", earlier[0].from,
			earlier[0].from)
	case has:
		found.Status, found.Reason = ImportConflict, "your own configuration has another server of that name"
	default:
		found.Status = ImportNew
	}
}

// refusalReason returns why a row must not be imported, even a disabled one; "" if it may be.
func refusalReason(s Server) string {
	if s.Phase == drawbridge.Disabled {
		if launch.StartsDrawbridge(s.Command, s.Args) {
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

// textWithoutName returns a warning's text without the server name, which is shown beside it.
func (w Warning) textWithoutName() string {
	return strings.TrimPrefix(w.Text, fmt.Sprintf("Server %q: ", w.Server))
}

// splitCommand returns a row whose command is the first word; the others precede its arguments.
func splitCommand(row configfile.Node, words []string) configfile.Node {
	text := func(s string) configfile.Node { return configfile.Node{Kind: configfile.Text, Text: s} }
	args := configfile.Node{Kind: configfile.List}
	for _, word := range words[1:] {
		args.Items = append(args.Items, text(word))
	}
	members := []configfile.Member{}
	for _, m := range row.Members {
		switch m.Name {
		case "command":
			m.Value = text(words[0])
		case "args":
			args.Items = append(args.Items, m.Value.Items...)
			continue
		}
		members = append(members, m)
	}
	row.Members = append(members, configfile.Member{Name: "args", Value: args})
	return row
}

// addMissingMember adds a member to a row that does not have it.
func addMissingMember(row configfile.Node, name, value string) configfile.Node {
	if _, ok := row.Find(name); !ok {
		row.Members = append(slices.Clip(row.Members), configfile.Member{Name: name,
			Value: configfile.Node{Kind: configfile.Text, Text: value}})
	}
	return row
}

// comparableContent returns the identity of a definition as JSON: the members that count in a row's hash, without those
// that have no effect.
func comparableContent(row configfile.Node) string {
	kept := configfile.Node{Kind: configfile.Table}
	for _, known := range rowMemberTable {
		m, ok := row.Find(known.name)
		empty := m.Value.Text == "" && len(m.Value.Items) == 0 && len(m.Value.Members) == 0 &&
			m.Name != "expected_tools"
		if !ok || !known.inHash || empty || m.Name == "type" && m.Value.Text != "sse" {
			continue
		}
		kept.Members = append(kept.Members, m)
	}
	return string(kept.AppendJSON(nil, true))
}
