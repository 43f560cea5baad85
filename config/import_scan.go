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

// An ImportStatus is the result of comparing another program's definition of a server with the person's own servers.
// ImportServers imports only definitions with the status ImportNew.
type ImportStatus string

// The values of ImportStatus.
const (
	// ImportNew marks a definition whose name does not exist in the person's own Drawbridge files.
	ImportNew ImportStatus = "new"
	// ImportSame marks a definition that the person's own files already contain, or that equals the first definition of
	// the same name in this scan.
	ImportSame ImportStatus = "same"
	// ImportConflict marks a definition whose name exists in the person's own files with a different definition.
	ImportConflict ImportStatus = "conflict"
	// ImportShadowed marks a definition that differs from the first definition of the same name in this scan.
	ImportShadowed ImportStatus = "shadowed"
	// ImportLeftOut marks a definition that the person did not choose to import. The caller of ScanImports sets this
	// status; ScanImports never returns it.
	ImportLeftOut ImportStatus = "left out"
	// ImportRefused marks a definition that cannot be mounted, or that starts Drawbridge itself.
	ImportRefused ImportStatus = "refused"
)

// An ImportCandidate is the definition of a server in a user-level file of another program.
type ImportCandidate struct {
	Name drawbridge.ServerID
	// Provider is the Provider.Name of the program, and ProviderTitle is its Provider.Title.
	Provider, ProviderTitle string
	Origin                  Origin
	// Transport is the result of Server.Transport.
	Transport string
	Status    ImportStatus
	// OwnName is the name of the equal server in the person's own files. It is empty if the files have no equal server.
	OwnName drawbridge.ServerID `json:"-"`
	// SameAs is the index in ImportScan.Candidates of the first earlier definition of the same name that equals this
	// one; nil if there is none.
	SameAs *int `json:"-"`
	// Reason describes for people why Status is not ImportNew; empty if it is ImportNew.
	Reason string
	// Raw is the row that ImportServers writes, as a JSON object without the name. Variables are not expanded, members
	// are in the order of DocumentedFields, and "imported_from" is the Name of the provider. It may contain secrets. It
	// is empty for a refused definition.
	Raw json.RawMessage
	// Notes are remarks for people, such as a part of the definition that could not be imported.
	Notes []string
}

// ImportScan is the result of ScanImports.
type ImportScan struct {
	// Candidates are sorted by provider, then by file in the provider's order, then by position in the file.
	Candidates []ImportCandidate
	// Warnings are about files: a file could not be read, has an unexpected form, or has too many servers.
	Warnings []Warning
	// Sources are the paths of the other programs' files that were read, in order.
	Sources []string
	// OwnNames are the names of the person's own servers, sorted.
	OwnNames []drawbridge.ServerID
}

// ScanImports returns the server definitions in the user-level files of other programs. from contains the names of the
// programs; an empty from means all programs. Files in a project directory are not read, except if the working
// directory is the home directory. Claude Code's file has entries that apply to one directory only; of these, only the
// entries for the working directory are returned. ScanImports writes nothing.
//
// Two definitions of a name are equal if they start or reach the same server in the same way. Differences in enabled,
// timeout, idle_stop and imported_from do not matter, nor does a url's type unless it is "sse".
//
// The error is a *drawbridge.Fault with the code InvalidInput. It reports an unknown name in from, or one of the
// person's own Drawbridge files that cannot be read. Such a file must not be written, so nothing can be imported.
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

// An importScanner compares the definitions of other programs with the person's own servers.
type importScanner struct {
	*loader
	keychainValue func(name string) (string, bool)
	// dirIsHome is set if the working directory is the home directory: files in it are the person's own.
	dirIsHome bool
	// userServers maps each server name in the person's own files to the definitions of that name, as returned by
	// comparableContent.
	userServers map[drawbridge.ServerID][]string
	// copies maps the definition of an imported server to the name of this server in the person's own files. The name
	// may differ from the server's name in the other program.
	copies map[importedDefinition]drawbridge.ServerID
	// seen maps each name to the earlier definitions of that name in this scan.
	seen  map[drawbridge.ServerID][]seenDefinition
	found ImportScan
}

type importedDefinition struct{ program, content string }

type seenDefinition struct {
	content, from string
	index         int
}

// readUserServers reads the person's own Drawbridge files into userServers and copies.
func (s *importScanner) readUserServers() error {
	s.userServers = map[drawbridge.ServerID][]string{}
	s.copies = map[importedDefinition]drawbridge.ServerID{}
	for _, src := range uniqueSources(s.conventionalSources(s.Project, OriginProject)) {
		if src.provider != "native" || src.kind != OriginUser {
			continue
		}
		src.namedByPerson = true // a broken file is an error
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
	s.disabledBy = nil // disabledServers is not part of a definition
	return nil
}

// keychainReference matches references to stored secrets, such as ${keychain:NAME}.
var keychainReference = lazyregexp.New(`\$\{keychain:([^}]*)\}`)

// withKeychainValues returns the row with references to stored secrets replaced by the secrets.
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
		_ = s.reportUnreadable(src, src.err) // the error is only a warning: the file was not named
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

// classify returns the candidate for a row, with its status.
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
	if err != nil { // cannot happen, because Raw is valid JSON
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

// compare sets the status of a candidate that is not refused. It compares content with the person's own servers and
// with the earlier definitions of the same name.
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

// refusalReason returns the reason why a row must not be imported; "" if it may be imported. It checks disabled rows
// too, since they can be enabled after the import.
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

// textWithoutName returns the warning's text without the name of the server, which the caller displays separately.
func (w Warning) textWithoutName() string {
	return strings.TrimPrefix(w.Text, fmt.Sprintf("Server %q: ", w.Server))
}

// splitCommand returns the row with words[0] as its command. The other words are inserted before the row's arguments.
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

// addMissingMember returns the row with a string member added, unless the row already has a member of that name.
func addMissingMember(row configfile.Node, name, value string) configfile.Node {
	if _, ok := row.Find(name); !ok {
		row.Members = append(slices.Clip(row.Members), configfile.Member{Name: name,
			Value: configfile.Node{Kind: configfile.Text, Text: value}})
	}
	return row
}

// comparableContent returns JSON that is equal for definitions of the same server. It contains the members that count
// in a row's hash, except empty members and a type other than "sse".
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
